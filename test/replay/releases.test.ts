import { Command, INTERRUPT, MemorySaver } from "@langchain/langgraph";
import {
  answer,
  compile,
  defineTool,
  defineWorkflow,
  describeTask,
  field,
  isWorkflowError,
  type ChildResult,
  type Migration,
  type Migrations,
  type StepContext,
  type TaskStore,
} from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { onBothDialects, type Dialect } from "../support/stores.ts";
import { replay } from "../../src/workflow/replay.ts";

/** Version 1: asks for an amount, asks whether it is right, files it. Code decides, so that no model is needed. */
const first = defineWorkflow({
  name: "claim",
  version: 1,
  state: { amount: field(z.number()), verdict: field(z.string()), draft: field(z.string()) },
  initial: "collect",
  steps: {
    collect: {
      to: ["collect", "review"],
      run: (_state, { observation }) =>
        observation?.kind === "answer"
          ? { patch: { amount: Number(observation.text), draft: "a draft" }, next: "review" }
          : { ask: "How much?" },
    },
    review: {
      to: ["review", "file"],
      run: (_state, { observation, clients }) => {
        if (clients.broken) throw new Error("killed here");
        return observation?.kind === "answer" && observation.question === "Is it right?"
          ? { patch: { verdict: observation.text }, next: "file" }
          : { ask: "Is it right?" };
      },
    },
    file: { to: ["done"], run: () => ({ next: "done" }) },
    done: { final: true },
  },
});

const MIGRATIONS: Migrations = {
  2: {
    renameFields: { amount: "sum" },
    changeFields: { sum: (value) => `${String(value)} EUR` },
    removeFields: ["draft"],
    renameSteps: { review: "check" },
    removeSteps: { file: "check" },
  },
};

/** Version 2: one step renamed, one gone, one field renamed and a text now, one gone, one new. */
const second = (migrations: Migrations = MIGRATIONS) =>
  defineWorkflow({
    name: "claim",
    version: 2,
    state: { sum: field(z.string()), verdict: field(z.string()), country: field(z.string()) },
    migrations,
    initial: "collect",
    steps: {
      collect: { to: ["collect", "check"], run: () => ({ ask: "How much?" }) },
      check: {
        to: ["check", "done"],
        run: (state, { observation }) =>
          observation?.kind === "answer" && observation.question === "Is it right?"
            ? { patch: { verdict: `${observation.text}: ${state.sum}`, country: "DE" }, next: "done" }
            : { ask: "Is it right?" },
      },
      done: { final: true },
    },
  });

/** Version 2 with nothing but a step's name changed, and no word about it. */
const onlyRenamed = defineWorkflow({
  name: "claim",
  version: 2,
  state: first.state,
  initial: "collect",
  steps: {
    collect: { to: ["collect", "check"], run: () => ({ ask: "How much?" }) },
    check: { to: ["check", "file"], run: () => ({ ask: "Is it right?" }) },
    file: { to: ["done"], run: () => ({ next: "done" }) },
    done: { final: true },
  },
});

/** Version 2 with nothing but a field's schema changed, and no word about it. */
const onlyRetyped = (version: number) =>
  defineWorkflow({
    ...first,
    version,
    state: { ...first.state, amount: field(z.string()) },
    steps: {
      collect: { to: ["review"], run: () => ({ next: "review" }) },
      review: { to: ["review", "file"], run: () => ({ ask: "Is it right?" }) },
      file: { to: ["done"], run: () => ({ next: "done" }) },
      done: { final: true },
    },
  });

/** The migrations of a version of a workflow whose second one changes something. */
const since = (version: number, migration: Migration): Migrations => (version > 1 ? { 2: migration } : {});

const config = (taskId: string) => ({ configurable: { thread_id: taskId } });

/** A task of version 1 that waits in its review. */
async function pausedInReview(store: TaskStore, taskId: string) {
  const graph = compile(first, { store });
  await graph.invoke({ message: "go" }, config(taskId));
  return graph.invoke({ message: "5" }, config(taskId));
}

/** A task of version 1 whose process ended while it was in its review: nothing of the step is committed. */
async function stoppedInReview(store: TaskStore, taskId: string): Promise<void> {
  const graph = compile(first, { store, clients: { broken: true } });
  await graph.invoke({ message: "go" }, config(taskId));
  await expect(graph.invoke({ message: "5" }, config(taskId))).rejects.toMatchObject({ code: "STEP_FAILED" });
}

/** All rows of a task, so that a refusal can be shown to have written nothing. */
async function rowsOf(dialect: Dialect, taskId: string): Promise<string> {
  const tables = ["checkpoints where thread_id", "writes where thread_id"].concat(
    ["heads", "events", "requests", "leases"].map((name) => `statecard_${name} where task_id`),
  );
  const rows: unknown[] = [];
  for (const table of tables) rows.push(await dialect.query(`select * from ${table} = '${taskId}'`));
  return JSON.stringify(rows.map((table) => (table as unknown[]).map((row) => JSON.stringify(row)).toSorted()));
}

const migratedEvents = async (store: TaskStore, taskId: string) =>
  (await store.events(taskId)).filter(({ kind }) => kind === "migrated").map(({ data }) => data);

describe("any other LangGraph checkpointer", () => {
  test("a paused task is migrated when it is loaded", async () => {
    const checkpointer = new MemorySaver();
    const v1 = compile(first, { checkpointer });
    await v1.invoke({ message: "go" }, config("t"));
    const paused = await v1.invoke({ message: "5" }, config("t"));
    const graph = compile(second(), { checkpointer });
    expect(await describeTask(graph.runtime.store, "t")).toMatchObject({ step: "check", state: { sum: "5 EUR" } });
    const done = await graph.invoke(answer(paused as never, "yes"), config("t"));
    expect(done).toMatchObject({ verdict: "yes: 5 EUR", execution: { status: "completed", version: 2 } });
  });

  test("one that does not fit is refused, and stays as it was", async () => {
    const checkpointer = new MemorySaver();
    const v1 = compile(first, { checkpointer });
    await v1.invoke({ message: "go" }, config("t"));
    const paused = await v1.invoke({ message: "5" }, config("t"));
    for (const graph of [compile(onlyRenamed, { checkpointer }), compile(onlyRetyped(2), { checkpointer })]) {
      for (const input of [answer(paused, "yes"), null, { message: "yes" }]) {
        await expect(graph.invoke(input as never, config("t"))).rejects.toMatchObject({ code: "TASK_QUARANTINED" });
      }
      expect(await describeTask(graph.runtime.store, "t")).toMatchObject({
        version: 1,
        step: "review",
        quarantine: expect.any(String),
      });
    }
    expect((await v1.invoke(answer(paused, "yes"), config("t"))).execution.status).toBe("completed");
  });
});

onBothDialects((dialect) => {
  describe("a release with declared migrations", () => {
    test("a paused task is answered with the request that was shown before it, and ends", async () => {
      const paused = await pausedInReview(dialect.open(), "paused");
      const store = dialect.open();
      const graph = compile(second(), { store });
      const seen = await graph.getState(config("paused"));
      expect(seen.values).toMatchObject({ sum: "5 EUR", country: null, execution: { step: "check", version: 2 } });
      expect(seen.next).toEqual(["act"]);
      expect(await describeTask(store, "paused")).toMatchObject({
        version: 2,
        step: "check",
        status: "waiting_user",
        state: { sum: "5 EUR", verdict: null, country: null },
      });
      const done = await graph.invoke(answer(paused as never, "yes"), config("paused"));
      expect(done).toMatchObject({ sum: "5 EUR", verdict: "yes: 5 EUR", country: "DE" });
      expect(done.execution).toMatchObject({ status: "completed", version: 2, completedSteps: ["collect", "check"] });
      expect(await migratedEvents(store, "paused")).toMatchObject([
        {
          from: 1,
          to: 2,
          done: [
            "step review is now check",
            "field amount is now sum",
            "field draft is gone",
            "field sum changed its form",
            "field country is new and empty",
          ],
          snapshot: {
            execution: { step: "check", version: 2, status: "waiting_user" },
            state: { sum: "5 EUR", verdict: null, country: null },
          },
        },
      ]);
    });

    test("the log tells the task over the release", async () => {
      const paused = await pausedInReview(dialect.open(), "told");
      const store = dialect.open();
      const done = await compile(second(), { store }).invoke(answer(paused as never, "yes"), config("told"));
      const { execution, ...state } = done;
      expect(replay("told", await store.events("told"))).toMatchObject({ tasks: [{ execution, state }] });
    });

    test("the message of a new input answers it too", async () => {
      await pausedInReview(dialect.open(), "message");
      const done = await compile(second(), { store: dialect.open() }).invoke({ message: "sure" }, config("message"));
      expect(done).toMatchObject({ verdict: "sure: 5 EUR", execution: { status: "completed" } });
    });

    test("a task that stopped inside the renamed step runs it under its new name", async () => {
      await stoppedInReview(dialect.open(), "stopped");
      const graph = compile(second(), { store: dialect.open() });
      expect((await graph.getState(config("stopped"))).next).toEqual(["check"]);
      const paused = await graph.invoke(null, config("stopped"));
      expect(paused[INTERRUPT]?.[0]?.value?.question).toBe("Is it right?");
      const done = await graph.invoke(answer(paused, "yes"), config("stopped"));
      expect(done.execution.status).toBe("completed");
    });

    test("a task that stopped inside a removed step goes on at the declared one", async () => {
      await stoppedInReview(dialect.open(), "removed");
      const { review: _review, ...migration } = { ...MIGRATIONS[2], review: null };
      const graph = compile(
        second({ 2: { ...migration, renameSteps: {}, removeSteps: { review: "collect", file: "check" } } }),
        { store: dialect.open() },
      );
      const paused = await graph.invoke(null, config("removed"));
      expect(paused.execution).toMatchObject({ step: "collect", status: "waiting_user" });
    });

    test("a failed task is tried again", async () => {
      const once = { ...first.steps.review, maxDecisions: 1 };
      const limited = defineWorkflow({ ...first, steps: { ...first.steps, review: once } });
      const graph = compile(limited, { store: dialect.open() });
      await graph.invoke({ message: "go" }, config("failed"));
      await graph.invoke({ message: "5" }, config("failed"));
      const failed = await graph.invoke({ message: "yes" }, config("failed"));
      expect(failed.execution.lastError).toMatchObject({ code: "STEP_LIMIT", step: "review" });
      const store = dialect.open();
      const again = await compile(second(), { store }).invoke(null, config("failed"));
      expect(again.execution).toMatchObject({ status: "completed", version: 2 });
      expect((await store.events("failed")).map(({ kind }) => kind).slice(-3)).toEqual([
        "migrated",
        "retry",
        "decision",
      ]);
    });

    test("a field is corrected by hand in the names of today", async () => {
      await pausedInReview(dialect.open(), "edited");
      const store = dialect.open();
      const graph = compile(second(), { store });
      await graph.updateState(config("edited"), { sum: "6 EUR" });
      expect(await describeTask(store, "edited")).toMatchObject({ state: { sum: "6 EUR" }, version: 2 });
      expect(await migratedEvents(store, "edited")).toHaveLength(1);
      const done = await graph.invoke({ message: "yes" }, config("edited"));
      expect(done).toMatchObject({ verdict: "yes: 6 EUR" });
    });

    test("an old checkpoint is forked in the names of today", async () => {
      await pausedInReview(dialect.open(), "forked");
      const graph = compile(second(), { store: dialect.open() });
      const done = await graph.invoke({ message: "yes" }, config("forked"));
      expect(done.execution.status).toBe("completed");
      const history: { id: string; step: string }[] = [];
      for await (const { config: at, values } of graph.getStateHistory(config("forked"))) {
        history.push({ id: String(at.configurable?.checkpoint_id), step: (values as typeof done).execution.step });
      }
      expect(history.map(({ step }) => step)).not.toContain("review");
      const inReview = history.findLast(({ step }) => step === "check");
      const configurable = { thread_id: "forked", checkpoint_id: inReview?.id };
      const again = await graph.invoke(null, { configurable });
      expect(again.execution).toMatchObject({ step: "check", status: "waiting_user", version: 2 });
      expect((await graph.invoke(answer(again, "no"), config("forked"))).verdict).toBe("no: 5 EUR");
    });

    test("a task that the release before runs again is refused there", async () => {
      const paused = await pausedInReview(dialect.open(), "newer");
      await compile(second(), { store: dialect.open() }).updateState(config("newer"), { sum: "6 EUR" });
      const old = compile(first, { store: dialect.open() }).invoke(answer(paused, "yes"), config("newer"));
      await expect(old).rejects.toMatchObject({
        code: "TASK_QUARANTINED",
        message: expect.stringContaining("written by version 2, a newer release"),
      });
    });
  });

  describe("a release that a paused task does not fit", () => {
    test("a renamed step (K12): refused with the old and the new names, and nothing is written", async () => {
      const paused = await pausedInReview(dialect.open(), "k12");
      const before = await rowsOf(dialect, "k12");
      const store = dialect.open();
      const graph = compile(onlyRenamed, { store });
      for (const input of [answer(paused, "yes"), { message: "yes" }, null]) {
        const refused = await graph.invoke(input as never, config("k12")).catch((error: unknown) => error);
        if (!isWorkflowError(refused, "TASK_QUARANTINED")) throw refused;
        expect(refused.message).toContain(
          'step "review" is not in version 2, whose steps are collect, check, file and done',
        );
        expect(refused.message).toContain('migrations: { 2: { renameSteps: { review: "…" } } }');
        expect(refused.details).toMatchObject({ taskId: "k12", from: 1, to: 2, step: "review", sameVersion: false });
      }
      await expect(graph.updateState(config("k12"), { verdict: "x" })).rejects.toMatchObject({
        code: "TASK_QUARANTINED",
      });
      expect(await rowsOf(dialect, "k12")).toBe(before);
      const done = await compile(first, { store: dialect.open() }).invoke(answer(paused, "yes"), config("k12"));
      expect(done.execution.status).toBe("completed");
    });

    test("a field that was a number and is a text now (K13): refused with the field, never loaded unchecked", async () => {
      await pausedInReview(dialect.open(), "k13");
      const before = await rowsOf(dialect, "k13");
      const graph = compile(onlyRetyped(2), { store: dialect.open() });
      const refused = graph.invoke({ message: "yes" }, config("k13"));
      await expect(refused).rejects.toMatchObject({
        code: "TASK_QUARANTINED",
        message: expect.stringMatching(/field "amount" was a number and does not fit its schema: .*expected string/),
        details: { field: "amount", from: 1, to: 2 },
      });
      await expect(graph.getState(config("k13"))).rejects.toMatchObject({ code: "TASK_QUARANTINED" });
      expect(await rowsOf(dialect, "k13")).toBe(before);
    });

    test("a schema that was changed without a new version", async () => {
      await pausedInReview(dialect.open(), "same");
      const refused = compile(onlyRetyped(1), { store: dialect.open() }).invoke({ message: "yes" }, config("same"));
      await expect(refused).rejects.toMatchObject({
        details: { sameVersion: true, field: "amount" },
        message: expect.stringContaining("npx statecard migrate"),
      });
    });

    test("it is still shown, as it is stored, with the reason", async () => {
      await pausedInReview(dialect.open(), "shown");
      const store = dialect.open();
      const graph = compile(onlyRenamed, { store });
      const reason = expect.stringContaining('step "review" is not in version 2');
      expect(await describeTask(store, "shown")).toMatchObject({
        version: 1,
        step: "review",
        status: "waiting_user",
        state: { amount: 5 },
        waiting: [{ question: "Is it right?" }],
        quarantine: reason,
      });
      const row = (await store.tasks()).find(({ taskId }) => taskId === "shown");
      expect(row).toMatchObject({ execution: { step: "review" }, waiting: [{ id: "q3.0" }], quarantine: reason });
      const steps: string[] = [];
      for await (const { values } of graph.getStateHistory(config("shown"))) {
        steps.push((values as { execution: { step: string } }).execution.step);
      }
      expect(steps).toContain("review");
    });
  });

  describe("actions that are pending when a release comes", () => {
    /** A workflow that pays once somebody has approved it. */
    function paying(version: number, step: string, parameters: z.ZodObject, paid: unknown[]) {
      const pay = defineTool({
        description: "Pays.",
        effect: "write",
        parameters,
        approve: true,
        run: (args) => paid.push(args),
      });
      const graph = {
        name: "paying",
        version,
        state: { note: field(z.string()) },
        tools: { pay },
        migrations: since(version, { renameSteps: { pay_out: step } }),
      };
      return defineWorkflow({
        ...graph,
        initial: step,
        steps: {
          [step]: {
            tools: ["pay"],
            to: ["done"],
            run: () => ({ calls: [{ tool: "pay", args: { amount: 5 } }], patch: { note: "paid" }, next: "done" }),
          },
          done: { final: true },
        },
      });
    }
    const amount = z.object({ amount: z.number() });

    test("an approval that was asked for before is given after it, and the call runs once", async () => {
      const paid: unknown[] = [];
      const asked = await compile(paying(1, "pay_out", amount, paid), { store: dialect.open() }).invoke(
        { message: "go" },
        config("approval"),
      );
      const graph = compile(paying(2, "transfer", amount, paid), { store: dialect.open() });
      const done = await graph.invoke(answer(asked, "approve"), config("approval"));
      expect(done).toMatchObject({ note: "paid", execution: { status: "completed", completedSteps: ["transfer"] } });
      expect(paid).toEqual([{ amount: 5 }]);
    });

    test("a call whose arguments fit no longer is not run", async () => {
      const paid: unknown[] = [];
      const asked = await compile(paying(1, "pay_out", amount, paid), { store: dialect.open() }).invoke(
        { message: "go" },
        config("arguments"),
      );
      const cents = z.object({ cents: z.number() });
      const graph = compile(paying(2, "transfer", cents, paid), { store: dialect.open() });
      await expect(graph.invoke(answer(asked, "approve"), config("arguments"))).rejects.toMatchObject({
        code: "TASK_QUARANTINED",
        details: { tool: "pay" },
      });
      expect(paid).toEqual([]);
    });

    test("a step's deadline holds, and leads where the release says", async () => {
      let now = Date.now();
      const clock = { now: () => now };
      const waiting = (version: number, step: string, to: string) =>
        defineWorkflow({
          name: "waiting",
          version,
          state: {},
          migrations: since(version, { renameSteps: { wait: step, late: to } }),
          initial: step,
          steps: {
            [step]: { to: [step, to], deadline: { afterMs: 60_000, to }, run: () => ({ ask: "When?" }) },
            [to]: { final: true },
          },
        });
      await compile(waiting(1, "wait", "late"), { store: dialect.open(clock), clock }).invoke(
        { message: "go" },
        config("late"),
      );
      now += 120_000;
      const done = await compile(waiting(2, "hold", "expired"), { store: dialect.open(clock), clock }).invoke(
        null,
        config("late"),
      );
      expect(done.execution).toMatchObject({ step: "expired", status: "completed" });
    });

    test("a child workflow goes on where it was, under its step's new name and its own new version", async () => {
      const begun: string[] = [];
      const child = (version: number, step: string) =>
        defineWorkflow({
          name: "interview",
          version,
          state: { said: field(z.string()) },
          migrations: since(version, { renameSteps: { listen: step } }),
          initial: "greet",
          steps: {
            greet: {
              to: [step],
              run: () => {
                begun.push(step);
                return { next: step };
              },
            },
            [step]: {
              to: [step, "over"],
              run: (_state: unknown, { observation }: StepContext) =>
                observation?.kind === "answer" ? { patch: { said: observation.text }, next: "over" } : { ask: "Well?" },
            },
            over: { final: true },
          },
        });
      const parent = (version: number, step: string, inner: ReturnType<typeof child>) =>
        defineWorkflow({
          name: "hiring",
          version,
          state: { said: field(z.string()) },
          migrations: since(version, { renameSteps: { interview_them: step } }),
          initial: step,
          steps: {
            [step]: {
              to: ["done"],
              workflow: inner,
              output: ({ state }: ChildResult) => ({ patch: { said: String(state.said) } }),
            },
            done: { final: true },
          },
        });
      const asked = await compile(parent(1, "interview_them", child(1, "listen")), { store: dialect.open() }).invoke(
        { message: "go" },
        config("child"),
      );
      const store = dialect.open();
      const graph = compile(parent(2, "talk", child(2, "hear")), { store });
      const done = await graph.invoke(answer(asked, "hello"), config("child"));
      expect(done).toMatchObject({ said: "hello", execution: { status: "completed", completedSteps: ["talk"] } });
      expect(begun).toEqual(["listen"]);
      expect((await store.tasks()).map(({ taskId }) => taskId).filter((id) => id.startsWith("child"))).toEqual([
        "child",
      ]);
    });
  });

  describe("writing the migrations down at once", () => {
    test("the task keeps its pause, its checkpoint and its request", async () => {
      const paused = await pausedInReview(dialect.open(), "written");
      const store = dialect.open();
      const graph = compile(second(), { store });
      const before = await store.head("written");
      const lease = await store.acquire("written");
      expect(await store.migrate(lease, "keep")).toMatchObject({ kind: "migrated", from: 1, to: 2 });
      await store.release(lease);
      const plain = dialect.open();
      expect(await plain.head("written")).toMatchObject({
        checkpointId: before?.checkpointId,
        execution: { version: 2, step: "check" },
      });
      const [task] = (await graph.getState(config("written"))).tasks;
      expect(task?.interrupts.map(({ value }) => value.requests[0].id)).toEqual(["q3.0"]);
      const done = await graph.invoke(answer(paused as never, "yes"), config("written"));
      expect(done).toMatchObject({ verdict: "yes: 5 EUR", execution: { status: "completed" } });
      expect(await migratedEvents(store, "written")).toHaveLength(1);
    });

    test("twice is once", async () => {
      await pausedInReview(dialect.open(), "twice");
      const store = dialect.open();
      compile(second(), { store });
      const lease = await store.acquire("twice");
      await store.migrate(lease, "keep");
      const rows = await rowsOf(dialect, "twice");
      expect(await store.migrate(lease, "keep")).toEqual({ kind: "fits" });
      expect(await rowsOf(dialect, "twice")).toBe(rows);
    });

    test("what does not fit can be emptied, and the log keeps what it was", async () => {
      await pausedInReview(dialect.open(), "emptied");
      const store = dialect.open();
      const graph = compile(onlyRetyped(1), { store });
      const lease = await store.acquire("emptied");
      expect(await store.migrate(lease, "keep")).toMatchObject({ kind: "quarantined", unfit: ["amount"] });
      expect(await store.migrate(lease, "empty")).toMatchObject({ kind: "migrated" });
      await store.release(lease);
      expect(await migratedEvents(store, "emptied")).toMatchObject([{ done: ["field amount was emptied, it was 5"] }]);
      expect(await describeTask(store, "emptied")).toMatchObject({ state: { amount: null }, status: "waiting_user" });
      const asked = await graph.invoke({ message: "yes" }, config("emptied"));
      expect(asked.execution.status).toBe("waiting_user");
    });

    test("only under the task's lease", async () => {
      await pausedInReview(dialect.open(), "leased");
      const store = dialect.open();
      compile(second(), { store });
      const stale = await store.acquire("leased");
      await store.release(stale);
      await expect(store.migrate(stale, "keep")).rejects.toMatchObject({ code: "STALE_WRITE" });
    });
  });

  test("an answer by id that came before the release is used after it", async () => {
    const store = dialect.open();
    await pausedInReview(store, "answered");
    await store.answer("answered", "q3.0", { answer: { type: "text", text: "yes" }, who: null });
    const done = await compile(second(), { store: dialect.open() }).invoke(null, config("answered"));
    expect(done).toMatchObject({ verdict: "yes: 5 EUR", execution: { status: "completed" } });
    await expect(
      compile(second(), { store: dialect.open() }).invoke(
        new Command({ resume: { "q3.0": "no" } }),
        config("answered"),
      ),
    ).rejects.toMatchObject({ code: "TASK_FINISHED" });
  });
});
