import { createHash } from "node:crypto";
import { Command, INTERRUPT, MemorySaver } from "@langchain/langgraph";
import {
  answer,
  artifactTools,
  compile,
  defineTool,
  defineWorkflow,
  describeTask,
  field,
  Memories,
  signedIn,
  sqliteStore,
  wakeDue,
  type CompileOptions,
} from "statecard";
import { scriptedModel } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { standingIn } from "../../src/compile/view-of.ts";
import { POLICIES } from "../../src/view/options.ts";
import { transcript } from "../../src/view/transcript.ts";
import { RemoteModel } from "../support/remote-model.ts";

const EMAIL = "ada@example.net";
const CODE = "const salary = 4711;";
const LONG = `${CODE}\n`.repeat(900);
const HOST = "db7.inner.corp";

const readFile = defineTool({
  description: "Reads a file.",
  effect: "read",
  parameters: z.object({ path: z.string() }),
  sensitive: { kinds: ["code", "keys"], of: ({ path }) => (path.endsWith(".md") ? null : "code") },
  run: ({ path }) => (path.endsWith(".md") ? `about ${HOST}` : path === "long.js" ? LONG : CODE),
});
const call = (path: string) => ({ tool: "readFile", args: { path } });

const desk = defineWorkflow({
  name: "desk",
  version: 1,
  state: {
    email: field(z.email()).sensitive("personal data"),
    topic: field(z.string()),
  },
  input: ["email"],
  sensitive: { innerAddresses: "inner addresses" },
  checks: { "a topic is no address": ({ topic, email }) => (topic === "it" ? `it is ${email}` : null) },
  tools: { readFile, ...artifactTools },
  initial: "working",
  steps: {
    working: {
      writes: ["topic", "email"],
      tools: ["readFile", "readArtifact", "searchArtifact"],
      to: ["working", "done"],
    },
    done: { final: true },
  },
});

const asAda = { configurable: { thread_id: "t", ...signedIn("ada") } };
const config = (task = "t") => ({ configurable: { thread_id: task } });
const begin = { email: EMAIL, message: `write to ${EMAIL} about ${HOST}` };
const open = (model: RemoteModel, options: Partial<CompileOptions> = {}) =>
  compile(desk, { model, store: sqliteStore(":memory:"), ...options });
const shown = (model: RemoteModel) => model.prompts.join("\n");

describe("before anything sensitive goes to a model that is not here", () => {
  test("a person is asked once, told what it is and where it would go; approved, it is sent", async () => {
    const model = new RemoteModel([{ calls: [call("a.js")] }, { next: "done" }, { next: "done" }]);
    const graph = open(model);
    const paused = await graph.invoke(begin, config());
    expect(model.prompts).toEqual([]);
    const [request] = paused[INTERRUPT]?.[0]?.value?.requests ?? [];
    expect(request).toMatchObject({
      id: "c1.0",
      kind: "approval",
      tool: "send_to_model",
      args: { destination: "models.example", kinds: ["code", "inner addresses", "keys", "personal data"] },
    });
    expect(request?.question).toBe(
      "May this go to large-1 at models.example, for all tasks of desk: code (results of readFile); inner addresses (addresses of the inner network); keys (results of readFile); personal data (field email)?",
    );
    const done = await graph.invoke(answer(paused, "approve"), asAda);
    expect(done.execution).toMatchObject({ status: "completed", decisions: 2 });
    expect(shown(model)).toContain(EMAIL);
    expect(shown(model)).toContain(CODE);
    expect(shown(model)).toContain(HOST);
    expect(shown(model)).not.toContain("[withheld");

    const other = await graph.invoke({ ...begin, message: "again" }, config("other"));
    expect(other.execution.status).toBe("completed");

    const store = graph.runtime.store;
    const logged = (await store.events("t")).filter(({ kind }) => kind === "consent");
    expect(logged.map(({ data }) => data.decision)).toEqual([
      null,
      {
        destination: "models.example",
        allowed: ["code", "inner addresses", "keys", "personal data"],
        withheld: [],
        by: "ada",
      },
    ]);
    expect(await store.allConsents()).toMatchObject([
      { kind: "code", isAllowed: true, by: "ada" },
      { kind: "inner addresses", isAllowed: true },
      { kind: "keys", isAllowed: true },
      { kind: "personal data", isAllowed: true },
    ]);
  });

  test.each(POLICIES)("rejected, no prompt under %s shows it, wherever it stands", async (policy) => {
    const model = new RemoteModel([
      { calls: [call("a.js"), call("notes.md")], because: `looking at ${EMAIL}` },
      { patch: { topic: `a letter to ${EMAIL.toUpperCase()} via ${HOST} and 10.1.2.3` } },
      { ask: "Which one?" },
      { next: "done" },
    ]);
    const graph = open(model, { view: { policy } });
    const paused = await graph.invoke(begin, config());
    const asked = await graph.invoke(answer(paused, { type: "reject", message: "not outside" }), config());
    const done = await graph.invoke(answer(asked, `the one of ${EMAIL}`), config());
    expect(done).toMatchObject({ email: EMAIL, execution: { status: "completed" } });
    expect(model.prompts).toHaveLength(4);
    for (const secret of [EMAIL, CODE, HOST, "10.1.2.3", "4711"]) {
      expect(shown(model).toLowerCase()).not.toContain(secret.toLowerCase());
    }
    const showsState = !["history", "window", "summary"].includes(policy);
    if (showsState) expect(model.prompts[0]).toContain("[withheld: personal data]");
    expect(model.prompts[0]).toContain("write to [withheld] about [withheld]");
    expect(model.prompts[1]).toContain("[withheld: code]");
    expect(model.prompts[1]).toContain("about [withheld]");
    expect(model.prompts[0]).toContain("go on without it, and never write it anywhere");
  });

  test("an edit allows the kinds that it leaves", async () => {
    const model = new RemoteModel([{ calls: [call("a.js")] }, { next: "done" }]);
    const graph = open(model);
    const paused = await graph.invoke(begin, config());
    const edit = (kinds: unknown) => answer(paused, { type: "edit", args: { kinds } as never });
    await expect(graph.invoke(edit(["all"]), config())).rejects.toThrow(
      'the edit was not taken: kinds is a list of what is allowed, of: "code", "inner addresses", "keys", "personal data"',
    );
    await graph.invoke(edit(["code", "inner addresses"]), config());
    expect(shown(model)).toContain(CODE);
    expect(shown(model)).toContain(HOST);
    expect(shown(model)).not.toContain(EMAIL);
  });

  test("nobody is asked where the prompt stays here, and nothing is left out", async () => {
    const here = [
      new RemoteModel([{ next: "done" }], "http://127.0.0.1:8080/v1"),
      new RemoteModel([{ next: "done" }], "http://localhost:8080/v1"),
      new RemoteModel([{ next: "done" }], "http://[::1]:8080/v1"),
    ];
    for (const model of here) {
      expect((await open(model).invoke(begin, config())).execution.status).toBe("completed");
      expect(shown(model)).toContain(EMAIL);
    }
    const vouched = new RemoteModel([{ next: "done" }], "https://llm.example:8443/v1");
    const graph = open(vouched, { consent: { localHosts: ["llm.example:8443"] } });
    expect((await graph.invoke(begin, config())).execution.status).toBe("completed");
    expect(shown(vouched)).toContain(EMAIL);
    const elsewhere = open(new RemoteModel([], "https://llm.example/v1"), {
      consent: { localHosts: ["llm.example:8443"] },
    });
    expect((await elsewhere.invoke(begin, config()))[INTERRUPT]).toHaveLength(1);
  });

  test("a program settles kinds for all models; only the others are asked about", async () => {
    const kinds = { code: "withhold", keys: "withhold", "personal data": "allow" } as const;
    const model = new RemoteModel([{ calls: [call("a.js")] }, { next: "done" }]);
    const graph = open(model, { consent: { kinds } });
    const paused = await graph.invoke(begin, config());
    expect(paused[INTERRUPT]?.[0]?.value?.requests?.[0]?.args?.kinds).toEqual(["inner addresses"]);
    await graph.invoke(answer(paused, "approve"), config());
    expect(shown(model)).toContain(EMAIL);
    expect(shown(model)).not.toContain(CODE);
  });

  test("with another LangGraph saver too", async () => {
    const model = new RemoteModel([{ next: "done" }]);
    const graph = compile(desk, { model, checkpointer: new MemorySaver() });
    await graph.invoke(begin, config());
    const done = await graph.invoke(new Command({ resume: "reject" }), config());
    expect(done.execution.status).toBe("completed");
    expect(shown(model)).not.toContain(EMAIL);
  });
});

const looking = defineWorkflow({
  name: "looking",
  version: 1,
  state: { contact: field(z.string()).sensitive("personal data"), phone: field(z.string()), rest: field(z.string()) },
  input: ["contact", "phone", "rest"],
  tools: {
    lookUp: defineTool({
      description: "Looks up.",
      effect: "read",
      parameters: z.object({ id: z.string() }),
      run: ({ id }) => `found ${id} ${"x ".repeat(300)}`,
    }),
  },
  initial: "work",
  steps: { work: { tools: ["lookUp"], to: ["work", "done"] }, done: { final: true } },
});

describe("what is withheld", () => {
  const refused = { consent: { kinds: { code: "withhold", keys: "withhold", "personal data": "withhold" } } } as const;
  const settled = { consent: { kinds: { ...refused.consent.kinds, "inner addresses": "allow" } } } as const;

  test("cannot be overwritten by what stands for it", async () => {
    const model = new RemoteModel([
      { patch: { email: "[withheld: personal data]" }, next: "done" },
      { patch: { topic: "sent to [withheld]" }, next: "done" },
      { patch: { topic: "mail" }, next: "done" },
    ]);
    const done = await open(model, settled).invoke(begin, config());
    expect(done).toMatchObject({ email: EMAIL, topic: "mail", execution: { status: "completed", refused: 2 } });
  });

  test("does not come out through pieces of an artifact, or a correction", async () => {
    const read = (id: string) => ({ tool: "readArtifact", args: { id } });
    const model = new RemoteModel([
      { calls: [call("long.js")] },
      { calls: [read(`1.0-${createHash("sha256").update(LONG).digest("hex").slice(0, 8)}`)] },
      { patch: { topic: "it" } },
      { next: "done" },
    ]);
    const graph = open(model, settled);
    const done = await graph.invoke(begin, config());
    expect(done.execution.refused).toBe(1);
    expect(model.prompts[3]).toContain("it is [withheld]");
    expect(shown(model)).not.toContain(EMAIL);
    const results = (await graph.runtime.store.events("t")).filter(({ kind }) => kind === "result");
    expect(JSON.stringify(results[1]?.data)).toContain("4711");
    expect(done.execution.status).toBe("completed");
    expect(shown(model)).not.toContain("4711");
  });

  test("is seen again by a model that is here, and not after it by one that is not", async () => {
    const local = scriptedModel([{ next: "outside" }, { next: "outside" }]);
    const model = new RemoteModel([{ next: "inside" }, { next: "inside" }, { next: "done" }]);
    const both = defineWorkflow({
      name: "both",
      version: 1,
      state: { email: field(z.email()).sensitive("personal data") },
      input: ["email"],
      initial: "outside",
      steps: {
        outside: { to: ["inside", "done"] },
        inside: { model: local, to: ["outside"] },
        done: { final: true },
      },
    });
    const graph = compile(both, { model, store: sqliteStore(":memory:"), ...refused });
    expect((await graph.invoke(begin, config())).execution.status).toBe("completed");
    expect(shown(model)).not.toContain(EMAIL);
    for (const prompt of local.prompts) expect(prompt).toContain(EMAIL);
    expect(local.prompts.join("\n")).not.toContain("[withheld");
  });

  test("is what an earlier snapshot of the adaptive policy left out too, or it does not stand in", () => {
    // It shows what could be shown when it was taken.
    const event = (withheld: string[]) => ({
      sequence: 1,
      revision: 1,
      at: 0,
      kind: "snapshot",
      data: { state: {}, ...(withheld.length > 0 ? { withheld } : {}) },
    });
    expect(standingIn([event([])], [])).not.toBeNull();
    expect(standingIn([event(["a"])], ["a"])).not.toBeNull();
    expect(standingIn([event([])], ["a"])).toBeNull();
    expect(standingIn([event(["a"])], ["b"])).toBeNull();
    expect(standingIn([event(["a"])], [])).toBeNull();
  });

  test.each(["zyx4711", "phone", "lookUp", "personal", "data", "withheld", "results"])(
    "leaves a snapshot standing where a value is called as a part of every prompt: %s",
    async (contact) => {
      const calls = Array.from({ length: 5 }, (_, index) => ({
        calls: [{ tool: "lookUp", args: { id: `i${index}` } }],
      }));
      const model = new RemoteModel([...calls, { next: "done" }]);
      const store = sqliteStore(":memory:");
      const graph = compile(looking, { model, store, ...refused, view: { policy: "adaptive", provider: "openai" } });
      await graph.invoke({ contact, rest: "word ".repeat(900), message: "go" }, config());
      expect((await store.events("t")).filter(({ kind }) => kind === "snapshot")).toHaveLength(1);
    },
  );

  test("what people write and what is remembered can be of a kind", async () => {
    const private_ = defineWorkflow({
      name: "private",
      version: 1,
      state: { topic: field(z.string()) },
      sensitive: { messages: "what people say" },
      initial: "asking",
      steps: { asking: { writes: ["topic"], to: ["asking", "done"] }, done: { final: true } },
    });
    const model = new RemoteModel([{ ask: "What is it?" }, { next: "done" }]);
    const graph = compile(private_, {
      model,
      store: sqliteStore(":memory:"),
      consent: { kinds: { "what people say": "withhold" } },
    });
    const asked = await graph.invoke({ message: "my secret" }, config());
    await graph.invoke(answer(asked, "another secret"), config());
    expect(shown(model)).not.toContain("secret");
    expect(model.prompts[1]).toContain("What is it?");
  });
});

test("what sensitive results leave in memory is condensed without a model", async () => {
  const summarised: string[] = [];
  const remembering = (kind: string | undefined) =>
    defineTool({
      description: "Looks up.",
      effect: "read",
      parameters: z.object({}),
      ...(kind === undefined ? {} : { sensitive: kind }),
      run: () => "fact ".repeat(2000),
      remembers: ({ value }) => [{ type: "fact", text: String(value), priority: 2 }],
    });
  const keeper = defineWorkflow({
    name: "keeper",
    version: 1,
    state: {},
    sensitive: { memories: "personal data" },
    tools: { open: remembering(undefined), secret: remembering("personal data") },
    initial: "a",
    steps: { a: { tools: ["open", "secret"], to: ["b"] }, b: { final: true } },
  });
  const store = sqliteStore(":memory:");
  const summarise = (text: string) => {
    summarised.push(text);
    return Promise.resolve("a sentence");
  };
  const memories = new Memories({ store: store.memory(), user: "ann", summarise });
  const remember = async (tool: string) => {
    const model = scriptedModel([{ calls: [{ tool, args: {} }], next: "b" }]);
    await compile(keeper, { model, store, memories }).invoke({ message: "go" }, config(tool));
  };
  await remember("secret");
  expect(summarised).toEqual([]);
  await remember("open");
  expect(summarised).toHaveLength(1);
});

describe("a consent", () => {
  test("given for one task lets another that waits for it go on", async () => {
    const model = new RemoteModel([{ next: "done" }, { next: "done" }]);
    const graph = open(model);
    const [first] = [await graph.invoke(begin, config("a")), await graph.invoke(begin, config("b"))];
    await graph.invoke(answer(first, "approve"), config("a"));
    expect(await describeTask(graph.runtime.store, "b")).not.toHaveProperty("waiting");
    const other = await graph.invoke(null, config("b"));
    expect(other.execution.status).toBe("completed");
  });

  test("that was given elsewhere wakes the tasks that waited for it, in the round for what is due", async () => {
    const model = new RemoteModel([{ next: "done" }, { next: "done" }]);
    const graph = open(model);
    const [first] = [await graph.invoke(begin, config("a")), await graph.invoke(begin, config("b"))];
    expect(await wakeDue(graph)).toEqual([]);
    await graph.invoke(answer(first, "reject"), config("a"));
    expect(await wakeDue(graph)).toEqual(["b"]);
    expect((await describeTask(graph.runtime.store, "b")).status).toBe("completed");
    expect(await wakeDue(graph)).toEqual([]);
  });

  test("can be withdrawn: the next decision asks again", async () => {
    const model = new RemoteModel([{ ask: "Which?" }, { next: "done" }]);
    const graph = open(model);
    const asked = await graph.invoke(answer(await graph.invoke(begin, config()), "approve"), config());
    await graph.runtime.store.withdrawConsents({ workflow: "desk" });
    const again = await graph.invoke(answer(asked, "the first"), config());
    expect(again[INTERRUPT]?.[0]?.value?.requests?.[0]?.id).toBe("c5.0");
    expect(model.prompts).toHaveLength(1);
    const done = await graph.invoke(answer(again, "reject"), config());
    expect(done.execution).toMatchObject({ status: "completed", decisions: 2 });
    expect(model.prompts[1]).not.toContain(EMAIL);
    // The answer that came meanwhile is what the model is shown.
    expect(model.prompts[1]).toContain("the first");
  });

  test("that was withdrawn is not found again in an old answer", async () => {
    const model = new RemoteModel([new Error("away"), { next: "done" }]);
    const graph = open(model);
    const paused = await graph.invoke(begin, config());
    await expect(graph.invoke(answer(paused, "approve"), config())).rejects.toThrow("away");
    await graph.runtime.store.withdrawConsents({ workflow: "desk" });
    const again = await graph.invoke(null, config());
    expect(again[INTERRUPT]).toHaveLength(1);
    await expect(graph.invoke(answer(paused, "approve"), config())).rejects.toThrow("is not open any more");
    const done = await graph.invoke(answer(again, "reject"), config());
    expect(done.execution.status).toBe("completed");
    expect(model.prompts[1]).not.toContain(EMAIL);
  });

  test("for one host is none for another", async () => {
    const store = sqliteStore(":memory:");
    const graph = open(new RemoteModel([{ next: "done" }]), { store });
    await graph.invoke(answer(await graph.invoke(begin, config("a")), "approve"), config("a"));
    const other = open(new RemoteModel([{ next: "done" }], "https://other.example/v1"), { store });
    expect((await other.invoke(begin, config("b")))[INTERRUPT]).toHaveLength(1);
  });

  test("leaves the message that waited with what was known of it", async () => {
    const model = new RemoteModel([{ next: "done" }]);
    const graph = open(model);
    await graph.invoke(answer(await graph.invoke(begin, config()), "approve"), config());
    const said = transcript(await graph.runtime.store.events("t")).flatMap(({ observation }) => observation ?? []);
    expect(said[0]).toMatchObject({ kind: "message", at: expect.any(Number) });
  });

  test("of a workflow that is a step of another is asked through it", async () => {
    const model = new RemoteModel([{ next: "done" }]);
    const parent = defineWorkflow({
      name: "parent",
      version: 1,
      state: { topic: field(z.string()).runtimeOnly() },
      initial: "handing",
      steps: {
        handing: {
          workflow: desk,
          input: () => ({ email: EMAIL }),
          output: () => ({ patch: { topic: "handed" }, next: "done" }),
          to: ["done"],
        },
        done: { final: true },
      },
    });
    const graph = compile(parent, { model, store: sqliteStore(":memory:") });
    const paused = await graph.invoke({ message: "go" }, config());
    expect(paused[INTERRUPT]?.[0]?.value?.requests?.[0]?.question).toMatch(
      /^May this go to large-1 at models\.example/,
    );
    const done = await graph.invoke(answer(paused, "reject"), config());
    expect(done).toMatchObject({ topic: "handed", execution: { status: "completed" } });
    expect(shown(model)).not.toContain(EMAIL);
  });

  test("is declared by kinds that have names", () => {
    const define = (kind: string) => () =>
      defineWorkflow({
        name: "w",
        version: 1,
        state: { email: field(z.string()).sensitive(kind) },
        initial: "a",
        steps: { a: { writes: ["email"], to: ["b"] }, b: { final: true } },
      });
    expect(define("")).toThrow("state.email: name the kind of data in 1 to 60 characters");
    expect(define("a, b")).toThrow("INVALID_NAME");
    expect(define("personal data")).not.toThrow();
  });
});
