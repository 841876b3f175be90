import { Command, INTERRUPT } from "@langchain/langgraph";
import {
  answer,
  compile,
  defineWorkflow,
  describeTask,
  field,
  signedIn,
  sqliteStore,
  wakeDue,
  type CompileOptions,
  type StepContext,
} from "statecard";
import { onFaultPoint, scriptedModel } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { openApprovals } from "../../src/compile/open-approvals.ts";
import { replyTo } from "../../src/compile/reply-to.ts";
import type { TaskStore } from "../../src/compile/store.ts";
import { replay } from "../../src/workflow/replay.ts";
import { RemoteModel } from "../support/remote-model.ts";

const EMAIL = "ada@example.net";
const HOST = "models.example";
const HOUR_MS = 3_600_000;

const letter = defineWorkflow({
  name: "letter",
  version: 1,
  state: { email: field(z.email()).sensitive("personal data"), code: field(z.string()).sensitive("code") },
  input: ["email", "code"],
  initial: "writing",
  steps: {
    writing: { to: ["writing", "late", "done"], deadline: { afterMs: HOUR_MS, to: "late" } },
    late: { final: true },
    done: { final: true },
  },
});

/** Has a letter written to each of three. */
const letters = defineWorkflow({
  name: "letters",
  version: 1,
  state: {},
  initial: "all",
  steps: {
    all: {
      map: {
        workflow: letter,
        over: () => ["ada@example.net", "bob@example.net", "eve@example.net"],
        input: (email) => ({ email: String(email) }),
        output: () => ({ next: "done" }),
        parallel: 2,
      },
      to: ["done"],
    },
    done: { final: true },
  },
});

const begin = { email: EMAIL, code: "x = 4711", message: "go" };
const config = (task = "t") => ({ configurable: { thread_id: task } });
const row = (kind: string, isAllowed: boolean, workflow = "letter") => ({
  workflow,
  destination: HOST,
  kind,
  isAllowed,
  by: "boss",
  at: 5,
});
const both = (isAllowed: boolean) => [row("code", isAllowed), row("personal data", isAllowed)];
const done = { next: "done" };
const edit = (args: object) => ({ type: "edit" as const, args: args as Record<string, unknown> });
const WORDS = { verb: String, request: "request" };

function desk(model = new RemoteModel([done, done]), options: Partial<CompileOptions> = {}) {
  const store = options.store ?? sqliteStore(":memory:");
  return { model, store, graph: compile(letter, { model, store, ...options }) };
}

async function crashing(work: () => Promise<unknown>) {
  onFaultPoint((point) => {
    if (point === "before-commit") throw new Error("crash");
  });
  await expect(work()).rejects.toThrow("crash");
  onFaultPoint(null);
}

const decisions = async (store: Pick<TaskStore, "allConsents">) =>
  (await store.allConsents()).map(({ kind, isAllowed, by }) => `${kind}: ${isAllowed} by ${by}`);

describe("an answer", () => {
  test("does not override what was decided elsewhere after it was asked", async () => {
    const { graph, store, model } = desk();
    await graph.invoke(begin, config());
    await store.answer("t", "c1.0", { answer: { type: "approve" }, who: "ada" });
    await store.keepConsents("t", [row("personal data", false)]);
    await graph.invoke(null, config());
    expect(await decisions(store)).toEqual(["code: true by ada", "personal data: false by boss"]);
    expect(model.prompts[0]).toContain("4711");
    expect(model.prompts[0]).not.toContain(EMAIL);
    const logged = (await store.events("t")).findLast(({ kind }) => kind === "consent");
    expect(logged?.data.decision).toMatchObject({ allowed: ["code"], withheld: ["personal data"], by: null });
  });

  test("counts once: withdrawn after a crash, it is asked for again", async () => {
    const { graph, store, model } = desk();
    const paused = await graph.invoke(begin, config());
    await crashing(() => graph.invoke(answer(paused, "approve"), config()));
    expect(await decisions(store)).toEqual(["code: true by null", "personal data: true by null"]);
    await store.withdrawConsents({ workflow: "letter" });
    const again = await graph.invoke(null, config());
    expect(again[INTERRUPT]?.[0]?.value?.requests?.map(({ id }) => id)).toEqual(["c3.0"]);
    expect((await describeTask(store, "t")).waiting?.map(({ id }) => id)).toEqual(["c3.0"]);
    expect(await decisions(store)).toEqual([]);
    await graph.invoke(answer(again, "reject"), config());
    expect(model.prompts[0]).not.toContain(EMAIL);
  });

  test("after a crash holds as it was kept, says who gave it, and the log holds together", async () => {
    const { graph, store, model } = desk();
    const paused = await graph.invoke(begin, config());
    const asAda = { configurable: { thread_id: "t", ...signedIn("ada") } };
    await crashing(() => graph.invoke(answer(paused, "approve"), asAda));
    const ended = await graph.invoke(null, config());
    expect(ended.execution.status).toBe("completed");
    expect(model.prompts[0]).toContain(EMAIL);
    const logged = (await store.events("t")).findLast(({ kind }) => kind === "consent");
    expect(logged?.data.decision).toMatchObject({ allowed: ["code", "personal data"], by: "ada" });
    expect(ended.execution).toMatchObject({ revision: 3, decisions: 1 });
    const [rebuilt] = replay("t", await store.events("t")).tasks;
    expect(rebuilt?.execution).toEqual(ended.execution);
  });

  test("changes nothing but the kinds, in a workflow within another too", async () => {
    const { graph } = desk();
    const paused = await graph.invoke(begin, config());
    const outer = compile(letters, { model: new RemoteModel([done, done, done]), store: sqliteStore(":memory:") });
    const inner = await outer.invoke({ message: "go" }, config());
    for (const [which, asked] of [
      [graph, paused],
      [outer, inner],
    ] as const) {
      const tried = (args: object) => which.invoke(answer(asked as never, edit(args) as never), config());
      await expect(tried({ kinds: ["code"], destination: "elsewhere.example" })).rejects.toThrow(
        "the edit was not taken: only kinds can be changed, and it has another destination",
      );
      await expect(tried({ kinds: ["code"], model: "small-1" })).rejects.toMatchObject({ code: "INVALID_REPLY" });
      await expect(tried({ kinds: ["all"] })).rejects.toThrow('is a list of what is allowed, of: "code"');
    }
    expect(await outer.runtime.store.allConsents()).toEqual([]);
    const ended = await outer.invoke(answer(inner, edit({ kinds: '["code"]', destination: HOST }) as never), config());
    // Some forms send every argument as a text.
    expect(ended.execution.status).toBe("completed");
    expect(await outer.runtime.store.allConsents()).toMatchObject([
      { kind: "code", isAllowed: true },
      { kind: "personal data", isAllowed: false },
    ]);
  });

  test("that cannot be read withholds nothing: the task asks again", async () => {
    const { graph, store } = desk();
    await graph.invoke(begin, config());
    await store.answer("t", "c1.0", { answer: { type: "edit", args: { kinds: ["all"] } }, who: "ada" });
    const again = await graph.invoke(null, config());
    expect(again[INTERRUPT]?.[0]?.value?.requests?.map(({ id }) => id)).toEqual(["c3.0"]);
    expect(await decisions(store)).toEqual([]);
  });
});

describe("a list of workflows that need the same", () => {
  async function waiting() {
    const store = sqliteStore(":memory:");
    const model = new RemoteModel([done, done, done]);
    const graph = compile(letters, { model, store });
    const paused = await graph.invoke({ message: "go" }, config());
    return { store, model, graph, paused };
  }

  test("asks once, and one answer lets all of them go on", async () => {
    const { store, model, graph, paused } = await waiting();
    expect(paused[INTERRUPT]?.[0]?.value?.requests).toHaveLength(1);
    const task = await describeTask(store, "t");
    expect(task.waiting).toMatchObject([{ id: "w1.0.0/c1.0", args: { workflow: "letter", destination: HOST } }]);
    expect((await openApprovals(store, { limit: 10 })).approvals).toHaveLength(1);
    const reply = await replyTo(store, task, { verb: "approve" }, undefined, WORDS);
    const ended = await graph.invoke(reply, config());
    expect(ended.execution.status).toBe("completed");
    expect(model.prompts).toHaveLength(3);
    expect(model.prompts.join("\n")).toContain(EMAIL);
  });

  test("goes on too where the others had paused again when the answer was kept", async () => {
    const { store, graph, paused } = await waiting();
    const keep = store.keepConsents.bind(store);
    const release = store.release.bind(store);
    const lastPaused = new Promise<void>((resolve) => {
      store.release = async (lease) => {
        await release(lease);
        if (lease.taskId.endsWith(".2")) resolve();
      };
    });
    store.keepConsents = async (...kept) => {
      await lastPaused;
      await keep(...kept);
    };
    const ended = await graph.invoke(answer(paused, "approve"), config());
    expect(ended.execution.status).toBe("completed");
  });

  test("takes a plain approval of the one that is shown", async () => {
    const { graph } = await waiting();
    const ended = await graph.invoke(new Command({ resume: "approve" }), config());
    expect(ended.execution.status).toBe("completed");
  });

  test("goes on where it was decided elsewhere, and an old approval does not undo that", async () => {
    const { store, model, graph, paused } = await waiting();
    expect(await wakeDue(graph)).toEqual([]);
    await store.keepConsents("t", both(false));
    expect(await describeTask(store, "t")).toMatchObject({ status: "running" });
    expect(await describeTask(store, "t")).not.toHaveProperty("waiting");
    await expect(graph.invoke(answer(paused, "approve"), config())).rejects.toThrow("is not open any more");
    expect(await wakeDue(graph)).toEqual(["t"]);
    expect((await describeTask(store, "t")).status).toBe("completed");
    expect(model.prompts).toHaveLength(3);
    expect(model.prompts.join("\n")).not.toContain(EMAIL);
    expect(await decisions(store)).toEqual(["code: false by boss", "personal data: false by boss"]);
  });

  test("goes on where its model is one on this machine by now", async () => {
    const { store } = await waiting();
    const here = scriptedModel([done, done, done]);
    const ended = await compile(letters, { model: here, store }).invoke(null, config());
    expect(ended.execution.status).toBe("completed");
  });
});

test("a list that goes on after a decision elsewhere is woken for it once, while one of it asks something", async () => {
  const store = sqliteStore(":memory:");
  const two = defineWorkflow({
    ...letters,
    steps: {
      ...letters.steps,
      all: { ...letters.steps.all, map: { ...letters.steps.all.map, over: () => ["a@example.net", "b@example.net"] } },
    },
  } as never) as typeof letters;
  const graph = compile(two, { model: new RemoteModel([done, { ask: "Which?" }, done]), store });
  const paused = await graph.invoke({ message: "go" }, config());
  await store.keepConsents("t", both(true));
  expect(await wakeDue(graph)).toEqual(["t"]);
  const task = await describeTask(store, "t");
  expect(task.waiting?.map(({ kind }) => kind)).toEqual(["question"]);
  expect((await store.openRequests({ workflow: "letters", limit: 9 })).map(({ request }) => request.kind)).toEqual([
    "question",
  ]);
  expect(await wakeDue(graph)).toEqual([]);
  await expect(graph.invoke(answer(paused, "approve"), config())).rejects.toMatchObject({ code: "STALE_RESUME" });
  expect((await graph.invoke(new Command({ resume: "the first" }), config())).execution.status).toBe("completed");
});

test("what a workflow within asked about a former model is not open any more", async () => {
  const store = sqliteStore(":memory:");
  const open = async () => (await describeTask(store, "t")).waiting?.map(({ id }) => id);
  await compile(letters, { model: new RemoteModel([]), store }).invoke({ message: "go" }, config());
  const ask = { ask: "Which?" };
  const elsewhere = compile(letters, { model: new RemoteModel([ask, ask, ask], "https://other.example/v1"), store });
  const again = await elsewhere.invoke(null, config());
  expect(await open()).toEqual(["w1.0.0/c3.0"]);
  await elsewhere.invoke(answer(again, "approve"), config());
  expect(await open()).toEqual(["w1.0.0/q1.0", "w1.0.1/q1.0", "w1.0.2/q1.0"]);
});

describe("while it waits", () => {
  test("a model on this machine by now asks nobody", async () => {
    const { graph, store } = desk();
    await graph.invoke(begin, config());
    const here = scriptedModel([done]);
    const ended = await compile(letter, { model: here, store }).invoke(null, config());
    expect(ended.execution.status).toBe("completed");
    expect(here.prompts[0]).toContain(EMAIL);
    expect(await decisions(store)).toEqual([]);
  });

  test("a model elsewhere by now is asked about instead", async () => {
    const { graph, store } = desk();
    const paused = await graph.invoke(begin, config());
    const other = compile(letter, { model: new RemoteModel([done], "https://other.example/v1"), store });
    const again = await other.invoke(null, config());
    expect(again[INTERRUPT]?.[0]?.value?.requests).toMatchObject([
      { id: "c3.0", args: { destination: "other.example" } },
    ]);
    expect((await describeTask(store, "t")).waiting).toHaveLength(1);
    for (const late of [answer(paused, "approve"), new Command({ resume: { "c1.0": "approve" } })])
      await expect(other.invoke(late, config())).rejects.toMatchObject({ code: "STALE_RESUME" });
    expect((await other.invoke(answer(again, "approve"), config())).execution.status).toBe("completed");
  });

  test("a kind that a release settles or names anew is not asked about as it was", async () => {
    const { graph, store } = desk();
    await graph.invoke(begin, config("a"));
    const settled = { kinds: { code: "allow", "personal data": "withhold" } } as const;
    const model = new RemoteModel([done]);
    const ended = await desk(model, { store, consent: settled }).graph.invoke(null, config("a"));
    expect(ended.execution.status).toBe("completed");
    expect(model.prompts[0]).not.toContain(EMAIL);

    await graph.invoke(begin, config("b"));
    const renamed = defineWorkflow({
      ...letter,
      name: "letter",
      state: { email: field(z.email()).sensitive("addresses"), code: field(z.string()) },
    } as never) as typeof letter;
    const again = await compile(renamed, { model, store }).invoke(null, config("b"));
    expect(again[INTERRUPT]?.[0]?.value?.requests).toMatchObject([{ args: { kinds: ["addresses"] } }]);
  });

  test("the deadline of its step holds", async () => {
    const clock = { at: 1_000_000, now: () => clock.at };
    const store = sqliteStore(":memory:", { clock });
    const { graph, model } = desk(new RemoteModel([]), { store, clock });
    const paused = await graph.invoke(begin, config());
    expect(paused[INTERRUPT]?.[0]?.value?.requests).toMatchObject([{ expiresAt: clock.at + HOUR_MS }]);
    const outer = compile(letters, { model, store, clock });
    await outer.invoke({ message: "go" }, config("outer"));
    expect(await wakeDue(graph)).toEqual([]);
    clock.at += HOUR_MS;
    await expect(graph.invoke(answer(paused, "approve"), config())).rejects.toMatchObject({ code: "APPROVAL_EXPIRED" });
    expect(await wakeDue(outer)).toEqual(["outer"]);
    expect((await describeTask(store, "outer")).status).toBe("completed");
    expect(await wakeDue(graph)).toEqual(["t"]);
    const task = await describeTask(store, "t");
    expect(task).toMatchObject({ status: "completed", step: "late" });
    expect(model.prompts).toEqual([]);
    expect(await decisions(store)).toEqual([]);
  });
});

test("a refusal for want of a kind names the command that allows it, with its tenant", async () => {
  const needing = defineWorkflow({ ...letter, sensitive: { needed: ["code"] } } as never) as typeof letter;
  const graph = compile(needing, {
    model: new RemoteModel([]),
    store: sqliteStore(":memory:"),
    consent: { kinds: { code: "withhold", "personal data": "allow" } },
  });
  await expect(graph.invoke(begin, config())).rejects.toThrow("(statecard consent allow letter) and resume");
  await expect(graph.invoke(begin, config("@acme/t"))).rejects.toThrow("consent allow letter --tenant acme)");
});

/** Has letters written within another workflow; one of them asks first. */
function nested(first: string, second: string) {
  const writing = defineWorkflow({
    ...letter,
    initial: "begun",
    steps: {
      begun: {
        to: ["writing"],
        run: ({ email }: { email: string | null }, { observation }: StepContext) =>
          email === null && observation?.kind !== "answer" ? { ask: "To whom?" } : { next: "writing" },
      },
      ...letter.steps,
    },
  } as never) as typeof letter;
  const all = {
    over: () => [first, second],
    input: (email: unknown) => (email === "" ? {} : { email: String(email) }),
  };
  const steps = { all: { ...letters.steps.all, map: { ...letters.steps.all.map, ...all, workflow: writing } } };
  const list = defineWorkflow({ ...letters, steps: { ...letters.steps, ...steps } } as never) as typeof letters;
  return defineWorkflow({
    name: "office",
    version: 1,
    state: {},
    initial: "working",
    steps: { working: { workflow: list, to: ["done"] }, done: { final: true } },
  });
}

const open = async (store: TaskStore) => (await describeTask(store, "t")).waiting?.map(({ id }) => id);

test("a list within a workflow goes on after a decision elsewhere, though one of it asks something", async () => {
  const store = sqliteStore(":memory:");
  const model = new RemoteModel([done]);
  const graph = compile(nested(EMAIL, ""), { model, store });
  await graph.invoke({}, config());
  expect(await open(store)).toEqual(["w1.0/w1.0.0/c2.0", "w1.0/w1.0.1/q1.0"]);
  await store.keepConsents("t", both(true));
  expect(await wakeDue(graph)).toEqual(["t"]);
  expect(model.prompts).toHaveLength(1);
  expect(await open(store)).toEqual(["w1.0/w1.0.1/q1.0"]);
  expect(await wakeDue(graph)).toEqual([]);
});

test("a consent keeps its id while it is open, though another comes to ask for the same", async () => {
  const store = sqliteStore(":memory:");
  const graph = compile(nested("", EMAIL), { model: new RemoteModel([done, done]), store });
  await graph.invoke({}, config());
  const before = await open(store);
  expect(before).toEqual(["w1.0/w1.0.0/q1.0", "w1.0/w1.0.1/c2.0"]);
  await graph.invoke(new Command({ resume: { "w1.0/w1.0.0/q1.0": "to her" } }), config());
  expect(await open(store)).toHaveLength(1);
  const approved = await graph.invoke(new Command({ resume: { "w1.0/w1.0.1/c2.0": "approve" } }), config());
  expect(approved.execution.status).toBe("completed");
});

test("a run that fails after a decision elsewhere is told once", async () => {
  const store = sqliteStore(":memory:");
  let tries = 0;
  const model = new RemoteModel([]);
  model._generate = () => {
    tries++;
    return Promise.reject(new Error("401 no key"));
  };
  const graph = compile(nested(EMAIL, EMAIL), { model, store });
  await graph.invoke({}, config());
  await store.keepConsents("t", both(true));
  await expect(wakeDue(graph)).rejects.toMatchObject({ code: "MODEL_FAILED" });
  const tried = tries;
  expect(await wakeDue(graph)).toEqual([]);
  expect(tries).toBe(tried);
  expect((await describeTask(store, "t")).status).toBe("failed");
});

test("a workflow within goes on with its parent, and not by a graph of its own", async () => {
  const store = sqliteStore(":memory:");
  const parent = compile(letters, { model: new RemoteModel([done, done, done]), store });
  const own = compile(letter, { model: new RemoteModel([]), store });
  await parent.invoke({ message: "go" }, config());
  await store.keepConsents("t", both(true));
  expect(await wakeDue(own)).toEqual([]);
  expect(await wakeDue(parent)).toEqual(["t"]);
  expect((await describeTask(store, "t")).status).toBe("completed");
});
