import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ChatOpenAI, type ChatOpenAIFields } from "@langchain/openai";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  answer,
  compile,
  defineWorkflow,
  describeTask,
  field,
  sqliteStore,
  WorkflowError,
  type OutputMode,
  type TaskEvent,
} from "statecard";
import { z } from "zod";
import { ticket } from "../../graphs/ticket/workflow.ts";
import type { CompileOptions } from "../../src/compile/compile.ts";
import {
  cutAtLimit,
  cutStream,
  decision,
  filtered,
  httpError,
  refusal,
  REPORTED,
  stall,
  stallBeforeHeaders,
  stallMidway,
  startOpenAIServer,
  text,
  tooManyRequests,
  type Behaviour,
  type OpenAIServer,
  type OpenAIServerOptions,
  type SentRequest,
} from "../support/openai-server.ts";

const API_KEY = "sk-test-0123456789abcdefghij";

const notes = defineWorkflow({
  name: "notes",
  version: 1,
  goal: "Keep one note.",
  state: { note: field(z.string()), priority: field(z.enum(["P1", "P2"])) },
  initial: "write",
  steps: {
    write: { writes: ["note"], to: ["check"] },
    check: { writes: ["priority"], to: ["done"] },
    done: { requires: ["note"], final: true },
  },
});

const FIRST = { because: "it was said", patch: { note: "router is off" }, next: "check" };
const LAST = { because: "it is urgent", patch: { priority: "P1" }, reply: 'Noted 📝, "now".', next: "done" };

type Form = "response_format" | "tools" | "plain";

interface Mode {
  readonly name: string;
  readonly outputMode?: OutputMode;
  readonly fields?: ChatOpenAIFields;
  /** What the requests carry; absent where any form will do. */
  readonly sends?: Form;
}

const MODES: readonly Mode[] = [
  { name: "native structured output", sends: "response_format" },
  { name: "tool calling", outputMode: "tool", sends: "tools" },
  { name: "plain JSON", outputMode: "json", sends: "plain" },
  { name: "the default without streaming", fields: { disableStreaming: true } },
  { name: "tool calling without streaming", outputMode: "tool", fields: { disableStreaming: true }, sends: "tools" },
  { name: "plain JSON without streaming", outputMode: "json", fields: { disableStreaming: true }, sends: "plain" },
];

async function startServer(script: readonly Behaviour[], options?: OpenAIServerOptions): Promise<OpenAIServer> {
  const server = await startOpenAIServer(script, options);
  onTestFinished(() => server.close());
  return server;
}

async function temporaryFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "statecard-openai-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return join(folder, "tasks.db");
}

function openAI(server: OpenAIServer, fields: ChatOpenAIFields = {}): ChatOpenAI {
  return new ChatOpenAI({
    model: "test-model",
    apiKey: API_KEY,
    maxRetries: 0,
    timeout: 30_000,
    configuration: { baseURL: server.baseURL },
    ...fields,
  });
}

const config = { configurable: { thread_id: "task" } };

/** The notes workflow in one mode against a server with this script, on a file of its own. */
async function setUp(mode: Mode, script: readonly Behaviour[]) {
  const server = await startServer(script);
  const store = sqliteStore(await temporaryFile());
  const model = openAI(server, mode.fields);
  const compiled = (options: CompileOptions = {}) =>
    compile(notes, { model, store, ...(mode.outputMode ? { outputMode: mode.outputMode } : {}), ...options });
  const graph = compiled();
  const eventsOf = async (kind: string): Promise<readonly TaskEvent[]> =>
    (await store.events("task")).filter((event) => event.kind === kind);
  const expectOnlyFirstCommitted = async () => {
    const task = await describeTask(store, "task");
    expect(task).toMatchObject({
      step: "check",
      completedSteps: ["write"],
      state: { note: "router is off", priority: null },
    });
    expect(await eventsOf("decision")).toHaveLength(1);
  };
  const expectResumes = async () => {
    const before = server.requests.length;
    const done = await graph.invoke(null, config);
    expect(done).toMatchObject({
      note: "router is off",
      priority: "P1",
      execution: { status: "completed", step: "done" },
    });
    expect(server.requests.length - before).toBe(1);
    expect(server.remaining()).toBe(0);
    expect(await eventsOf("decision")).toHaveLength(2);
  };
  return { server, store, graph, compiled, eventsOf, expectOnlyFirstCommitted, expectResumes };
}

async function failureOf(run: Promise<unknown>): Promise<WorkflowError> {
  const error = await run.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(WorkflowError);
  return error as WorkflowError;
}

function sentForm(request: SentRequest): Form {
  if (request.response_format && !request.tools) return "response_format";
  if (request.tools && !request.response_format) return "tools";
  expect(request).not.toHaveProperty("response_format");
  expect(request).not.toHaveProperty("tools");
  return "plain";
}

function expectForm(mode: Mode, server: OpenAIServer): void {
  const forms = new Set(server.requests.map(sentForm));
  expect(forms.size).toBe(1);
  if (mode.sends) expect(forms).toContain(mode.sends);
}

function lastMessage(request: SentRequest | undefined) {
  return request?.messages.at(-1)?.content ?? "";
}

function usageOf(calls: number) {
  return {
    calls,
    inputTokens: calls * REPORTED.prompt,
    cachedTokens: calls * REPORTED.cached,
    outputTokens: calls * REPORTED.completion,
  };
}

describe.each(MODES)("an OpenAI model asked by $name", (mode) => {
  test("carries a ticket to its end, with the usage of every call", async () => {
    const server = await startServer([
      decision({ because: "all is known", next: "deciding" }),
      decision({
        because: "the line drops",
        patch: { analysis: "line drops", solution: "restart the router" },
        ask: "Shall I start?",
      }),
      decision({ because: "the user agrees", next: "resolving" }),
      decision({ because: "it was done", patch: { result: "closed, user told" }, reply: "Done.", next: "done" }),
    ]);
    const options = mode.outputMode ? { outputMode: mode.outputMode } : {};
    const graph = compile(ticket, {
      model: openAI(server, mode.fields),
      store: sqliteStore(await temporaryFile()),
      ...options,
    });
    const input = { message: "network unstable", ticketType: "network", priority: "P1" as const };
    const paused = await graph.invoke(input, config);
    const done = await graph.invoke(answer(paused, "go"), config);
    expect(done).toMatchObject({
      solution: "restart the router",
      result: "closed, user told",
      execution: { status: "completed", decisions: 4, refused: 0, usage: usageOf(4) },
    });
    expectForm(mode, server);
    expect(server.requests).toHaveLength(4);
    expect(server.requests.map((request) => request.stream ?? false)).toEqual(
      Array.from({ length: 4 }, () => !mode.fields?.disableStreaming),
    );
  });

  test("offers the step's own moves and fields in the form that is sent", async () => {
    const { server, graph } = await setUp(mode, [decision(FIRST), decision(LAST)]);
    await graph.invoke({ message: "router" }, config);
    const forms = server.requests.map((request) => {
      const schema =
        request.response_format?.json_schema?.schema ?? request.tools?.[0]?.function.parameters ?? lastMessage(request);
      return typeof schema === "string" ? schema : JSON.stringify(schema);
    });
    expect(forms[0]).toContain('"enum":["check",null]');
    expect(forms[0]).toContain('"note"');
    expect(forms[0]).not.toContain('"priority"');
    expect(forms[1]).toContain('"enum":["done",null]');
    expect(forms[1]).toContain('"priority"');
    expect(forms[1]).not.toContain('"note"');
  });

  test("streams the text of a reply and nothing else of the answer", async () => {
    const { graph } = await setUp(mode, [decision(FIRST), decision(LAST)]);
    const deltas: string[] = [];
    const tokens: string[] = [];
    const stream = await graph.stream({ message: "router" }, { ...config, streamMode: ["custom", "messages"] });
    for await (const [kind, data] of stream as AsyncIterable<[string, unknown]>) {
      if (kind === "custom") deltas.push((data as { delta: string }).delta);
      else tokens.push(String((data as [{ content: unknown }])[0].content));
    }
    expect(deltas.join("")).toBe(LAST.reply);
    expect(tokens.join("")).toBe(LAST.reply);
  });

  test("gets a malformed answer back with the reason and then goes on; its text and tokens are kept", async () => {
    const raw = "I think it is urgent, so P1!";
    const { server, graph, eventsOf } = await setUp(mode, [decision(FIRST), text(raw), decision(LAST)]);
    const done = await graph.invoke({ message: "router" }, config);
    expect(done).toMatchObject({ priority: "P1", execution: { status: "completed", refused: 1, usage: usageOf(3) } });
    const [refused] = await eventsOf("refused");
    expect(refused?.data).toMatchObject({ code: "INVALID_DECISION", step: "check", answer: raw });
    const corrected = server.requests[2];
    expect(lastMessage(corrected)).toContain("INVALID_DECISION: the answer holds no JSON object");
    expect(corrected?.messages.at(-2)).toMatchObject({ role: "assistant", content: raw });
    expectForm(mode, server);
  });

  test("repairs a trailing comma and a fence without asking again", async () => {
    const { server, graph } = await setUp(mode, [
      decision(FIRST),
      text('```json\n{"because":"urgent","patch":{"priority":"P1",},"next":"done",}\n```'),
    ]);
    const done = await graph.invoke({ message: "router" }, config);
    expect(done).toMatchObject({ priority: "P1", execution: { status: "completed", refused: 0 } });
    expect(server.requests).toHaveLength(2);
  });

  test("is corrected at most twice; then the task has failed with INVALID_DECISION and can be resumed", async () => {
    const wrong = [
      decision({ patch: ["P1"], next: "done" }),
      decision({ priority: "P1", next: "done" }),
      text('{"patch":{"priority":"P1"},"next":"do'),
    ];
    const { server, store, graph, eventsOf, expectOnlyFirstCommitted, expectResumes } = await setUp(mode, [
      decision(FIRST),
      ...wrong,
      decision(LAST),
    ]);
    const failed = await graph.invoke({ message: "router" }, config);
    expect(failed.execution).toMatchObject({
      status: "failed",
      step: "check",
      refused: 3,
      usage: usageOf(4),
      lastError: { code: "INVALID_DECISION", step: "check" },
    });
    expect(server.requests).toHaveLength(4);
    expect(lastMessage(server.requests[2])).toContain("INVALID_DECISION: the answer has the wrong shape: patch");
    expect(lastMessage(server.requests[3])).toContain("INVALID_DECISION: the answer has the wrong shape");
    expect(lastMessage(server.requests[3])).toContain('"priority"');
    expect((await eventsOf("refused")).map((event) => event.data.code)).toEqual(Array(3).fill("INVALID_DECISION"));
    expect(await describeTask(store, "task")).toMatchObject({
      status: "failed",
      lastError: { code: "INVALID_DECISION" },
    });
    await expectOnlyFirstCommitted();
    await expectResumes();
  });

  test("is corrected where it writes a value outside the enumeration, and where it leaves the table", async () => {
    const { server, graph, eventsOf } = await setUp(mode, [
      decision({ patch: { note: "x" }, next: "done" }),
      decision(FIRST),
      decision({ patch: { priority: "urgent" }, next: "done" }),
      decision(LAST),
    ]);
    const done = await graph.invoke({ message: "router" }, config);
    expect(done).toMatchObject({ note: "router is off", priority: "P1", execution: { refused: 2 } });
    expect((await eventsOf("refused")).map((event) => event.data.code)).toEqual([
      "ILLEGAL_TRANSITION",
      "INVALID_FIELD",
    ]);
    expect(lastMessage(server.requests[1])).toContain("ILLEGAL_TRANSITION");
    expect(lastMessage(server.requests[3])).toContain("priority");
  });

  test("is corrected when the output limit ended the answer, even where the piece looks whole", async () => {
    const piece = '{"patch":{"priority":"P2"},"next":"done"}';
    const { server, graph, eventsOf } = await setUp(mode, [decision(FIRST), cutAtLimit(piece), decision(LAST)]);
    const done = await graph.invoke({ message: "router" }, config);
    expect(done).toMatchObject({ priority: "P1", execution: { status: "completed", refused: 1, usage: usageOf(3) } });
    expect((await eventsOf("refused"))[0]?.data).toMatchObject({ code: "INVALID_DECISION", answer: piece });
    expect(lastMessage(server.requests[2])).toContain("output limit");
  });

  test.each([
    ["refuses", refusal("I cannot help with that."), "I cannot help with that."],
    ["is stopped by the content filter", filtered(), "content filter"],
    ["is stopped by the content filter after a whole answer", filtered(JSON.stringify(LAST)), "content filter"],
  ])("that %s fails the task with MODEL_REFUSED at once, and it can be resumed", async (_how, behaviour, said) => {
    const { server, graph, eventsOf, expectOnlyFirstCommitted, expectResumes } = await setUp(mode, [
      decision(FIRST),
      behaviour,
      decision(LAST),
    ]);
    const failed = await graph.invoke({ message: "router" }, config);
    expect(failed.execution).toMatchObject({
      status: "failed",
      usage: usageOf(2),
      lastError: { code: "MODEL_REFUSED" },
    });
    expect(failed.execution.lastError?.message).toContain(said);
    expect(server.requests).toHaveLength(2);
    expect((await eventsOf("refused"))[0]?.data).toMatchObject({ code: "MODEL_REFUSED", step: "check" });
    await expectOnlyFirstCommitted();
    await expectResumes();
  });

  test.each([
    [429, true],
    [500, true],
    [400, false],
  ])(
    "that answers HTTP %i fails with MODEL_FAILED (retryable: %s), and the task can be resumed",
    async (status, retryable) => {
      const { server, store, graph, expectOnlyFirstCommitted, expectResumes } = await setUp(mode, [
        decision(FIRST),
        httpError(status, "something is wrong", status === 429 ? "0" : undefined),
        decision(LAST),
      ]);
      const error = await failureOf(graph.invoke({ message: "router" }, config));
      expect(error).toMatchObject({ code: "MODEL_FAILED", retryable, details: { status } });
      expect(error.message).toContain(String(status));
      expect(server.requests).toHaveLength(2);
      const task = await describeTask(store, "task");
      expect(task).toMatchObject({
        status: "failed",
        lastError: { code: "MODEL_FAILED", step: "check" },
        usage: usageOf(1),
      });
      await expectOnlyFirstCommitted();
      await expectResumes();
    },
  );

  test("whose connection breaks in mid-answer fails with MODEL_FAILED, commits nothing, and can be resumed", async () => {
    const { store, graph, expectOnlyFirstCommitted, expectResumes } = await setUp(mode, [
      decision(FIRST),
      cutStream({ because: "it is urgent", patch: { priority: "P2" }, next: "done" }),
      decision(LAST),
    ]);
    const error = await failureOf(graph.invoke({ message: "router" }, config));
    expect(error).toMatchObject({ code: "MODEL_FAILED", retryable: true });
    expect(error.details).not.toHaveProperty("status");
    expect(await describeTask(store, "task")).toMatchObject({ status: "failed", lastError: { code: "MODEL_FAILED" } });
    await expectOnlyFirstCommitted();
    await expectResumes();
  });

  test.each([
    ["before the headers", stallBeforeHeaders()],
    ["after the headers", stall()],
    ["in mid-answer", stallMidway({ patch: { priority: "P2" }, next: "done" })],
  ])(
    "that stalls %s fails with MODEL_TIMEOUT, commits nothing, and the task can be resumed",
    async (_when, behaviour) => {
      const { server, store, graph, compiled, expectOnlyFirstCommitted, expectResumes } = await setUp(mode, [
        decision(FIRST),
        decision(LAST),
      ]);
      // Only the model that stalls has the short limit, and a server of its own, so that nothing here
      // depends on how far its request got.
      const stalling = openAI(await startServer([behaviour]), mode.fields);
      const stream = await graph.stream({ message: "router" }, { ...config, interruptAfter: ["write"] });
      for await (const _update of stream);
      const error = await failureOf(compiled({ model: stalling, modelTimeoutMs: 200 }).invoke(null, config));
      expect(error).toMatchObject({ code: "MODEL_TIMEOUT", retryable: true });
      expect(server.requests).toHaveLength(1);
      expect(await describeTask(store, "task")).toMatchObject({
        status: "failed",
        lastError: { code: "MODEL_TIMEOUT" },
      });
      await expectOnlyFirstCommitted();
      await expectResumes();
    },
  );
});

describe("an OpenAI model", () => {
  const native = MODES[0] as Mode;

  test("whose server rejects response_format is asked by tool calling from then on", async () => {
    const server = await startServer([decision(FIRST), decision(LAST)], { rejectsResponseFormat: true });
    const graph = compile(notes, { model: openAI(server), store: sqliteStore(await temporaryFile()) });
    const done = await graph.invoke({ message: "router" }, config);
    expect(done).toMatchObject({ priority: "P1", execution: { status: "completed", refused: 0, usage: usageOf(2) } });
    expect(server.requests.map(sentForm)).toEqual(["response_format", "tools", "tools"]);
  });

  test("whose server rejects response_format is not switched where the mode was chosen", async () => {
    const server = await startServer([decision(FIRST)], { rejectsResponseFormat: true });
    const store = sqliteStore(await temporaryFile());
    const graph = compile(notes, { model: openAI(server), store, outputMode: "native" });
    const error = await failureOf(graph.invoke({ message: "router" }, config));
    expect(error).toMatchObject({ code: "MODEL_FAILED", details: { status: 400 }, retryable: false });
    expect(server.requests.map(sentForm)).toEqual(["response_format"]);
  });

  test("that answers another HTTP 400 is not switched to tool calling", async () => {
    const { server, graph } = await setUp(native, [
      httpError(400, "the model is unknown"),
      decision(FIRST),
      decision(LAST),
    ]);
    await failureOf(graph.invoke({ message: "router" }, config));
    await graph.invoke(null, config);
    expect(server.requests.map(sentForm)).toEqual(Array(3).fill("response_format"));
  });

  test.each([
    [401, false],
    [403, false],
    [404, false],
    [408, true],
    [503, true],
  ])("that answers HTTP %i fails with that status (retryable: %s)", async (status, retryable) => {
    const { graph, eventsOf } = await setUp(native, [httpError(status, "something is wrong")]);
    const error = await failureOf(graph.invoke({ message: "router" }, config));
    expect(error).toMatchObject({ code: "MODEL_FAILED", retryable, details: { status } });
    expect((await eventsOf("error")).map((event) => event.data.code)).toEqual(["MODEL_FAILED"]);
  });

  test("that answers in content although tools were sent is understood", async () => {
    const server = await startServer([decision(FIRST), decision(LAST)]);
    const withoutTools = openAI(server, { modelKwargs: { tools: undefined } });
    const store = sqliteStore(await temporaryFile());
    const graph = compile(notes, { model: withoutTools, store, outputMode: "tool" });
    const done = await graph.invoke({ message: "router" }, config);
    expect(done.execution.status).toBe("completed");
  });

  test("tries again by itself as often as it was told to, and the task sees nothing of it", async () => {
    const server = await startServer([tooManyRequests("0"), decision(FIRST), decision(LAST)]);
    const store = sqliteStore(await temporaryFile());
    const graph = compile(notes, { model: openAI(server, { maxRetries: 1 }), store });
    const done = await graph.invoke({ message: "router" }, config);
    expect(done.execution).toMatchObject({ status: "completed", refused: 0 });
    expect(server.requests).toHaveLength(3);
    expect((await store.events("task")).map((event) => event.kind)).not.toContain("error");
  });

  test("whose own time limit ends the call leaves a task that can be resumed", async () => {
    const server = await startServer([decision(FIRST), decision(LAST)]);
    const stalling = await startServer([stallBeforeHeaders()]);
    const store = sqliteStore(await temporaryFile());
    const impatient = compile(notes, { model: openAI(stalling, { timeout: 200 }), store });
    const error = await failureOf(impatient.invoke({ message: "router" }, config));
    expect(error.retryable).toBe(true);
    expect(["MODEL_FAILED", "MODEL_TIMEOUT"]).toContain(error.code);
    const done = await compile(notes, { model: openAI(server), store }).invoke(null, config);
    expect(done).toMatchObject({ note: "router is off", execution: { status: "completed" } });
  });

  test("that nothing listens for fails with MODEL_FAILED, and the task can be resumed", async () => {
    const gone = await startOpenAIServer([]);
    await gone.close();
    const store = sqliteStore(await temporaryFile());
    const error = await failureOf(compile(notes, { model: openAI(gone), store }).invoke({ message: "router" }, config));
    expect(error).toMatchObject({ code: "MODEL_FAILED", retryable: true });
    const server = await startServer([decision(FIRST), decision(LAST)]);
    const done = await compile(notes, { model: openAI(server), store }).invoke(null, config);
    expect(done.execution.status).toBe("completed");
  });

  test.each([
    ["streamed", false],
    ["whole", true],
  ])("K16: may give a tool call an id of 1,500 characters (%s)", async (_how, disableStreaming) => {
    const toolCallId = "c".repeat(1_500);
    const server = await startServer([
      decision({ patch: { note: 1 }, next: "check" }, { toolCallId }),
      decision(FIRST, { toolCallId }),
      decision(LAST, { toolCallId }),
    ]);
    const store = sqliteStore(await temporaryFile());
    const graph = compile(notes, { model: openAI(server, { disableStreaming }), store, outputMode: "tool" });
    const done = await graph.invoke({ message: "router" }, config);
    expect(done).toMatchObject({
      note: "router is off",
      priority: "P1",
      execution: { status: "completed", refused: 1 },
    });
  });

  test.each([
    ["streamed", false],
    ["whole", true],
  ])("that makes two tool calls in one answer is taken by its first (%s)", async (_how, disableStreaming) => {
    const secondCall = { patch: { note: "another" }, next: "check" };
    const server = await startServer([decision(FIRST, { secondCall }), decision(LAST)]);
    const store = sqliteStore(await temporaryFile());
    const graph = compile(notes, { model: openAI(server, { disableStreaming }), store, outputMode: "tool" });
    const done = await graph.invoke({ message: "router" }, config);
    expect(done).toMatchObject({ note: "router is off", execution: { status: "completed", refused: 0 } });
  });

  test.each([
    ["of a known format", API_KEY],
    ["of a format of its own", "local-proxy-password-4711"],
  ])("never puts an API key %s into an error message or the event log", async (_what, apiKey) => {
    const server = await startServer([httpError(401, `Incorrect API key provided: ${apiKey}. Check your key.`)]);
    const store = sqliteStore(await temporaryFile());
    const graph = compile(notes, { model: openAI(server, { apiKey }), store });
    const error = await failureOf(graph.invoke({ message: "router" }, config));
    expect(error).toMatchObject({ code: "MODEL_FAILED", details: { status: 401 } });
    expect(error.message).toContain("Incorrect API key");
    expect(JSON.stringify(error)).not.toContain(apiKey);
    expect(error.message).not.toContain(apiKey);
    expect(JSON.stringify(await store.events("task"))).not.toContain(apiKey);
    expect(JSON.stringify(await describeTask(store, "task"))).not.toContain(apiKey);
  });

  test("that repeats an API key in a refused answer does not bring it into the event log", async () => {
    const { store, graph } = await setUp(native, [text(`the key is ${API_KEY}`), decision(FIRST), decision(LAST)]);
    await graph.invoke({ message: "router" }, config);
    const events = JSON.stringify(await store.events("task"));
    expect(events).toContain("the key is");
    expect(events).not.toContain(API_KEY);
  });

  test("is paid for a refused answer too when the call after it fails", async () => {
    const { store, graph } = await setUp(native, [
      text("no JSON"),
      httpError(500, "down"),
      decision(FIRST),
      decision(LAST),
    ]);
    await failureOf(graph.invoke({ message: "router" }, config));
    await graph.invoke(null, config);
    expect((await describeTask(store, "task")).usage).toEqual(usageOf(3));
  });

  test("is not asked again for a recorded decision after a restart", async () => {
    const server = await startServer([
      decision({ because: "all is known", next: "deciding" }),
      decision({ patch: { analysis: "line drops", solution: "restart the router" }, ask: "Shall I start?" }),
      decision({ because: "the user agrees", next: "resolving" }),
      decision({ patch: { result: "closed, user told" }, reply: "Done.", next: "done" }),
    ]);
    const file = await temporaryFile();
    const start = () => compile(ticket, { model: openAI(server), store: sqliteStore(file) });
    const input = { message: "network unstable", ticketType: "network", priority: "P1" as const };
    const paused = await start().invoke(input, config);
    expect(server.requests).toHaveLength(2);
    // Waking a task that still waits for its answer asks the person, not the model.
    await start().invoke(null, config);
    expect(server.requests).toHaveLength(2);
    const done = await start().invoke(answer(paused, "go"), config);
    expect(done.execution).toMatchObject({ status: "completed", decisions: 4, usage: usageOf(4) });
    expect(server.requests).toHaveLength(4);
    expect(lastMessage(server.requests[2])).toMatch(/^go\n<status>/);
  });
});

describe("one schema for the whole workflow", () => {
  const NOTHING = { reasoning: null, because: null, patch: null, next: null, ask: null, reply: null };
  const first = { ...NOTHING, patch: { note: "router is off", priority: null }, next: "check" };
  const last = { ...NOTHING, patch: { note: null, priority: "P1" }, next: "done" };
  const schemaIn = ({ response_format, tools }: SentRequest) =>
    JSON.stringify(response_format?.json_schema ?? tools?.map((tool) => tool.function));

  test.each(MODES.slice(0, 2))("is the same bytes in every step, with $name", async (mode) => {
    const { server, compiled } = await setUp(
      mode,
      [first, last, first, last].map((each) => decision(each)),
    );
    const run = async (graph: ReturnType<typeof compiled>, task: string) => {
      const done = await graph.invoke({ message: "go" }, { configurable: { thread_id: task } });
      expect(done).toMatchObject({ note: "router is off", priority: "P1", execution: { status: "completed" } });
    };
    await run(compiled({ schemaScope: "workflow" }), "wide");
    const [one, two] = server.requests.map(schemaIn);
    expect(one).toBe(two);
    for (const name of ["check", "done", "note", "priority"]) expect(one).toContain(`"${name}"`);
    await run(compiled(), "by step");
    expect(schemaIn(server.requests[2] as SentRequest)).not.toBe(schemaIn(server.requests[3] as SentRequest));
  });

  test("lets nothing pass that the step does not allow", async () => {
    const early = { ...first, patch: { note: "router is off", priority: "P1" } };
    const far = { ...first, next: "done" };
    const { server, compiled, eventsOf } = await setUp(
      MODES[0] as Mode,
      [early, far, first, last].map((each) => decision(each)),
    );
    const done = await compiled({ schemaScope: "workflow" }).invoke({ message: "go" }, config);
    expect(done.execution).toMatchObject({ status: "completed", refused: 2 });
    const refused = await eventsOf("refused");
    expect(refused.map(({ data }) => data.code)).toEqual(["FIELD_NOT_WRITABLE", "ILLEGAL_TRANSITION"]);
    expect(server.remaining()).toBe(0);
  });

  test("in plain JSON it stays the step's, behind the prompt", async () => {
    const { server, compiled } = await setUp(MODES[2] as Mode, [decision(FIRST), decision(LAST)]);
    await compiled({ schemaScope: "workflow" }).invoke({ message: "go" }, config);
    const told = server.requests[0]?.messages.at(-1)?.content;
    expect(told).toMatch(/^<answer-schema>\n.*"note".*\n<\/answer-schema>$/);
    expect(told).not.toContain("P2");
  });
});
