import { ChatOpenAI } from "@langchain/openai";
import { describe, expect, onTestFinished, test } from "vitest";
import { compile, defineWorkflow, modelFromEnvironment, WorkflowError } from "statecard";
import { decision, startOpenAIServer } from "../support/openai-server.ts";

const KEY = "sk-test-0123456789abcdefghij";

async function openAIFrom(environment: NodeJS.ProcessEnv): Promise<ChatOpenAI> {
  const model = await modelFromEnvironment(environment);
  expect(model).toBeInstanceOf(ChatOpenAI);
  return model as ChatOpenAI;
}

async function errorFrom(environment: NodeJS.ProcessEnv): Promise<WorkflowError> {
  const error = await modelFromEnvironment(environment).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(WorkflowError);
  return error as WorkflowError;
}

describe("the model from the environment", () => {
  test.each([
    ["no key", {}],
    ["an empty key", { OPENAI_API_KEY: "" }],
    ["no key but an address", { OPENAI_BASE_URL: "http://127.0.0.1:1/v1", OPENAI_MODEL: "some-model" }],
    ["no key and a bad address", { OPENAI_BASE_URL: "not an address" }],
  ])("is null with %s", async (_what, environment) => {
    expect(await modelFromEnvironment(environment)).toBeNull();
  });

  test("is taken by compile as it is, also where there is none", async () => {
    const workflow = defineWorkflow({
      name: "asking",
      version: 1,
      state: {},
      initial: "asking",
      steps: { asking: { to: ["asking", "done"] }, done: { final: true } },
    });
    const [model, planner] = await Promise.all([modelFromEnvironment({}), modelFromEnvironment({})]);
    const graph = compile(workflow, { model, planner });
    expect(graph.runtime).toMatchObject({ model: undefined, planner: undefined });
    const run = graph.invoke({ message: "go" }, { configurable: { thread_id: "t" } });
    await expect(run).rejects.toMatchObject({ code: "MISSING_MODEL" });
  });

  test.each([
    ["before it", ` ${KEY}`],
    ["after it", `${KEY}\n`],
    ["in it", `${KEY.slice(0, 9)} ${KEY.slice(9)}`],
    ["only", " \t"],
  ])("refuses a key with white space %s, without repeating the key", async (_where, key) => {
    const error = await errorFrom({ OPENAI_API_KEY: key });
    expect(error.code).toBe("INVALID_ENVIRONMENT");
    expect(error.message).toContain("OPENAI_API_KEY");
    expect(error.message).not.toContain(KEY.slice(9));
  });

  test.each([
    "not an address",
    "127.0.0.1:8080",
    "localhost:8080/v1",
    "ftp://example.org/v1",
    "file:///v1",
    "/v1",
    " ",
  ])("refuses the address %j", async (address) => {
    const error = await errorFrom({ OPENAI_API_KEY: KEY, OPENAI_BASE_URL: address });
    expect(error.code).toBe("INVALID_ENVIRONMENT");
    expect(error.message).toContain("OPENAI_BASE_URL");
    expect(error.message).not.toContain(KEY);
  });

  test("has a time limit and few retries, which ChatOpenAI itself has not", async () => {
    const model = await openAIFrom({ OPENAI_API_KEY: KEY });
    expect(model.timeout).toBe(60_000);
    expect((model.caller as unknown as { maxRetries: number }).maxRetries).toBe(2);
  });

  test("is the one that OPENAI_MODEL names, else a default", async () => {
    expect((await openAIFrom({ OPENAI_API_KEY: KEY, OPENAI_MODEL: "some-model" })).model).toBe("some-model");
    const byDefault = await openAIFrom({ OPENAI_API_KEY: KEY });
    expect(byDefault.model).not.toBe("");
    expect((await openAIFrom({ OPENAI_API_KEY: KEY, OPENAI_MODEL: "" })).model).toBe(byDefault.model);
  });

  test("asks the server at OPENAI_BASE_URL", async () => {
    const server = await startOpenAIServer([decision({ because: "it is enough", reply: "Hi.", next: "done" })]);
    onTestFinished(() => server.close());
    const model = await openAIFrom({ OPENAI_API_KEY: KEY, OPENAI_BASE_URL: server.baseURL });
    const hello = defineWorkflow({
      name: "hello",
      version: 1,
      state: {},
      initial: "greet",
      steps: { greet: { to: ["done"] }, done: { final: true } },
    });
    const done = await compile(hello, { model }).invoke({ message: "hi" }, { configurable: { thread_id: "task" } });
    expect(done.execution.status).toBe("completed");
    expect(server.requests.map((request) => request.model)).toEqual([model.model]);
  });
});
