import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AzureChatOpenAI, ChatOpenAI } from "@langchain/openai";
import { compile, defineWorkflow } from "statecard";
import { afterEach, describe, expect, test, vi } from "vitest";
import { destinationOf } from "../../src/decision/destination.ts";

afterEach(() => vi.unstubAllEnvs());

/** Stands for a class that is not installed, with the properties that it has. */
const like = (type: string, properties: object) =>
  ({ _llmType: () => type, ...properties }) as unknown as BaseChatModel;

describe("a deployment of Azure's is known by its name and its own host", () => {
  const azure = (own: object) =>
    destinationOf(
      new AzureChatOpenAI({
        azureOpenAIApiKey: "none",
        azureOpenAIApiDeploymentName: "triage",
        azureOpenAIApiVersion: "v1",
        ...own,
      }),
    );

  test("by its instance", () => {
    expect(azure({ azureOpenAIApiInstanceName: "contoso" })).toEqual({
      name: "contoso.openai.azure.com",
      model: "triage at contoso.openai.azure.com",
      isLocal: false,
    });
  });

  test("by a base path or an endpoint, which come before the instance", () => {
    const instance = { azureOpenAIApiInstanceName: "contoso" };
    const path = { azureOpenAIBasePath: "https://gate.example/openai/deployments" };
    const endpoint = { azureOpenAIEndpoint: "https://ep.example/" };
    expect(azure({ ...instance, ...endpoint }).name).toBe("ep.example");
    expect(azure({ ...instance, ...endpoint, ...path }).name).toBe("gate.example");
  });

  test("an address that its class does not take says nothing", () => {
    const configuration = { baseURL: "http://127.0.0.1:9/v1" };
    expect(azure({ azureOpenAIApiInstanceName: "contoso", configuration }).isLocal).toBe(false);
  });
});

test("a model of Anthropic's goes where its object or its variable says", () => {
  vi.stubEnv("ANTHROPIC_BASE_URL", "");
  const claude = (properties: object = {}) => destinationOf(like("anthropic", { model: "claude", ...properties }));
  expect(claude()).toMatchObject({ name: "api.anthropic.com", model: "claude at api.anthropic.com" });
  vi.stubEnv("ANTHROPIC_BASE_URL", "https://gate.example/anthropic");
  expect(claude().name).toBe("gate.example");
  const clientOptions = { baseURL: "http://127.0.0.1:9" };
  expect(claude({ clientOptions })).toMatchObject({ name: "127.0.0.1:9", isLocal: true });
  expect(claude({ clientOptions, apiUrl: "https://api.example" })).toMatchObject({
    name: "api.example",
    isLocal: false,
  });
});

test("a region is part of where a model is", () => {
  const bedrock = { model: "claude", region: "eu-central-1" };
  expect(destinationOf(like("chat_bedrock_converse", bedrock))).toMatchObject({
    name: "bedrock-runtime.eu-central-1.amazonaws.com",
    isLocal: false,
  });
  const own = destinationOf(like("chat_bedrock_converse", { ...bedrock, endpointHost: "vpce.example" }));
  expect(own.name).toBe("vpce.example");
  const vertex = { platform: "gcp", endpoint: "europe-west3-aiplatform.googleapis.com" };
  expect(destinationOf(like("google", { connection: vertex })).name).toBe("europe-west3-aiplatform.googleapis.com");
  const gemini = { platform: "gai", endpoint: "us-central1-aiplatform.googleapis.com" };
  expect(destinationOf(like("google", { connection: gemini })).name).toBe("generativelanguage.googleapis.com");
});

test("a model in Ollama's cloud is not here, though its server is", () => {
  const ollama = (model: string, baseUrl = "http://127.0.0.1:11434") =>
    destinationOf(like("ollama", { model, baseUrl }));
  expect(ollama("gpt-oss:20b").isLocal).toBe(true);
  expect(ollama("gpt-oss:20b", "localhost:11434")).toMatchObject({ name: "localhost:11434", isLocal: true });
  expect(ollama("gpt-oss:120b-cloud")).toEqual({
    name: "ollama.com",
    model: "gpt-oss:120b-cloud at ollama.com",
    isLocal: false,
  });
  expect(ollama("glm-4.6:cloud").isLocal).toBe(false);
  expect(ollama("gpt-oss:120b-cloud", "http://gpu.corp:11434").name).toBe("ollama.com via gpu.corp:11434");
  const local = (model: string) =>
    destinationOf(new ChatOpenAI({ apiKey: "none", model, configuration: { baseURL: "http://127.0.0.1:11434/v1" } }));
  expect(local("gpt-oss:120b-cloud").isLocal).toBe(false);
  expect(local("my-cloud").isLocal).toBe(true);
});

test("what only wraps a model is refused, since nobody could say where its prompts go", () => {
  const model = new ChatOpenAI({ apiKey: "none", model: "gpt-5-mini" });
  const fallbacks = model.withFallbacks([model]) as unknown as BaseChatModel;
  const retried = model.withRetry() as unknown as BaseChatModel;
  const steps = (own: object) => ({ sorting: { to: ["done"], ...own }, done: { final: true } }) as const;
  const workflow = (own: object = {}) =>
    defineWorkflow({ name: "w", version: 1, state: {}, initial: "sorting", steps: steps(own) as never });
  const refused = (place: string, what: string) =>
    expect.objectContaining({
      code: "INVALID_OPTIONS",
      message: expect.stringContaining(`${place}: ${what} is no chat model`),
    });
  expect(() => compile(workflow(), { model: fallbacks })).toThrow(refused("model", "RunnableWithFallbacks"));
  expect(() => compile(workflow(), { model, planner: retried })).toThrow(refused("planner", "RunnableRetry"));
  expect(() => compile(workflow({ model: fallbacks }))).toThrow(
    refused("step sorting, model", "RunnableWithFallbacks"),
  );
  expect(() => compile(workflow(), { model })).not.toThrow();
});
