import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command, INTERRUPT } from "@langchain/langgraph";
import Database from "better-sqlite3";
import {
  answer,
  compile,
  defineTool,
  defineWorkflow,
  describeTask,
  field,
  signedIn,
  sqliteStore,
  type ApprovalRule,
} from "statecard";
import { onFaultPoint, scriptedModel, type ScriptedAnswer } from "statecard/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { requestDigest } from "../../src/people/requests.ts";

interface Arguments {
  readonly order: string;
  readonly amount: number;
}
type Rule = true | ApprovalRule | ((args: Arguments) => boolean | ApprovalRule);

const TIME_LIMIT_MS = 60_000;
const pay = (order: string, amount: number) => ({ tool: "pay", args: { order, amount } });
const TWO = { count: 2 };
const config = { configurable: { thread_id: "t" } };
const as = (name: string) => ({ configurable: { thread_id: "t", ...signedIn(name) } });
const resume = (reply: unknown) => new Command({ resume: reply });

/** A workflow whose payments need an approval, in a file; every `open()` stands for another process. */
function payments(rule: Rule, script: readonly ScriptedAnswer[], options: { deadline?: boolean } = {}) {
  const paid: Arguments[] = [];
  const time = { now: Date.UTC(2030, 0, 1) };
  const clock = { now: () => time.now };
  const folder = mkdtempSync(join(tmpdir(), "statecard-approvals-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "tasks.db");
  const tool = defineTool({
    description: "Pays.",
    parameters: z.object({ order: z.string(), amount: z.number() }),
    effect: "write",
    run: (args) => {
      paid.push(args);
      return "paid";
    },
  });
  const workflow = defineWorkflow({
    name: "payments",
    version: 1,
    state: { note: field(z.string()) },
    tools: { pay: tool },
    initial: "paying",
    steps: {
      paying: {
        tools: ["pay"],
        writes: ["note"],
        to: ["paying", "late", "done"],
        approve: { pay: rule },
        ...(options.deadline ? { deadline: { afterMs: TIME_LIMIT_MS, to: "late" as const } } : {}),
      },
      late: { writes: ["note"], to: ["done"] },
      done: { final: true },
    },
  });
  const model = scriptedModel([...script]);
  const open = () => compile(workflow, { model, clock, store: sqliteStore(file, { clock }) });
  /** Changes what is stored about a request, behind the runtime's back. */
  const tamper = (id: string, change: (request: Record<string, unknown>) => object) => {
    const database = new Database(file);
    const row = database.prepare("select request from statecard_requests where id = ?").get(id) as { request: string };
    const changed = JSON.stringify(change(JSON.parse(row.request) as Record<string, unknown>));
    database.prepare("update statecard_requests set request = ? where id = ?").run(changed, id);
    database.close();
  };
  return { paid, time, model, open, tamper };
}

const once = [{ calls: [pay("1", 5)], next: "done" }];

describe("each refusal has its own code", () => {
  test("K1: of two answers at once exactly one counts, and the call runs once", async () => {
    const { paid, open } = payments(true, once);
    const paused = await open().invoke({ message: "go" }, config);
    const results = await Promise.allSettled(
      ["a", "b"].map((name) => open().invoke(answer(paused, "approve"), as(name))),
    );
    const refused = results.flatMap((result) => (result.status === "rejected" ? [(result.reason as Error).name] : []));
    expect(refused).toHaveLength(1);
    expect(["STALE_RESUME", "TASK_BUSY", "TASK_FINISHED"]).toContain(refused[0]);
    expect(paid).toHaveLength(1);
  });

  test("K19: arguments that were edited in the database are not approved", async () => {
    const { paid, open, tamper } = payments(true, once);
    const paused = await open().invoke({ message: "go" }, config);
    tamper("a1.0.0", (request) => ({ ...request, args: { order: "1", amount: 5000 } }));
    for (const reply of [answer(paused, "approve"), resume("approve"), resume({ "a1.0.0": "approve" })])
      await expect(open().invoke(reply, as("ada"))).rejects.toMatchObject({ code: "APPROVAL_CHANGED" });
    await expect(open().invoke(resume({ type: "edit", args: { amount: 6 } }), as("ada"))).rejects.toThrow();
    expect(paid).toEqual([]);
  });

  test("K19: nor where the digest was edited with them", async () => {
    const { paid, open, tamper } = payments(true, [...once, { next: "done" }]);
    const paused = await open().invoke({ message: "go" }, config);
    const content = { kind: "approval" as const, question: "pay", tool: "pay", args: { order: "1", amount: 5000 } };
    tamper("a1.0.0", (request) => ({ ...request, ...content, digest: requestDigest(content) }));
    await expect(open().invoke(answer(paused, "approve"), as("ada"))).rejects.toMatchObject({
      code: "APPROVAL_CHANGED",
    });
    await expect(open().invoke(resume("approve"), as("ada"))).rejects.toMatchObject({ code: "APPROVAL_CHANGED" });
    expect(paid).toEqual([]);
  });

  test("K19: a client that was shown something else approves nothing", async () => {
    const { paid, open } = payments(true, once);
    await open().invoke({ message: "go" }, config);
    const forged = resume({ __statecard_replies: [{ id: "a1.0.0", shown: "another digest", reply: "approve" }] });
    await expect(open().invoke(forged, as("ada"))).rejects.toMatchObject({ code: "APPROVAL_CHANGED" });
    expect(paid).toEqual([]);
    expect((await open().invoke(resume("approve"), as("ada"))).execution.status).toBe("completed");
  });

  test("K20: an unknown approver", async () => {
    const { paid, open } = payments({ approvers: ["ada"] }, once);
    const paused = await open().invoke({ message: "go" }, config);
    for (const reply of ["approve", "reject"])
      await expect(open().invoke(answer(paused, reply), as("eve"))).rejects.toMatchObject({ code: "APPROVER_UNKNOWN" });
    expect(paid).toEqual([]);
    expect((await open().invoke(answer(paused, "approve"), as("ada"))).execution.status).toBe("completed");
  });

  test("K20: an expired approval, which can be rejected no more either", async () => {
    const { paid, time, open, model } = payments({ expiresAfterMs: 1000 }, once);
    const paused = await open().invoke({ message: "go" }, config);
    time.now += 1000;
    for (const reply of ["approve", "reject"])
      await expect(open().invoke(answer(paused, reply), as("ada"))).rejects.toMatchObject({ code: "APPROVAL_EXPIRED" });
    expect(paid).toEqual([]);
    model.assertConsumed();
  });

  test("K20 and K6: an approval that was used, while a newer one waits", async () => {
    const { paid, open } = payments(true, [{ calls: [pay("1", 5)] }, { calls: [pay("2", 6)], next: "done" }]);
    const first = await open().invoke({ message: "go" }, config);
    const second = await open().invoke(answer(first, "approve"), as("ada"));
    expect(paid).toEqual([{ order: "1", amount: 5 }]);
    await expect(open().invoke(answer(first, "approve"), as("ada"))).rejects.toMatchObject({ code: "APPROVAL_USED" });
    const { waiting } = await describeTask(open().runtime.store, "t");
    expect(waiting?.map(({ id }) => id)).toEqual(["a2.0.0"]);
    expect(paid).toHaveLength(1);
    await open().invoke(answer(second, "approve"), as("ada"));
    expect(paid).toHaveLength(2);
  });

  test("a request that there never was", async () => {
    const { open } = payments(true, once);
    await open().invoke({ message: "go" }, config);
    const reply = resume({ "a7.0.0": "approve" });
    await expect(open().invoke(reply, as("ada"))).rejects.toMatchObject({ code: "UNKNOWN_REQUEST" });
  });
});

describe("several calls", () => {
  test("K4: one is approved and runs, the other rejected and does not; the model learns of both", async () => {
    const { paid, open, model } = payments(true, [
      { calls: [pay("1", 5), pay("2", 6)], next: "done" },
      { next: "done" },
    ]);
    await open().invoke({ message: "go" }, config);
    const decisions = [{ type: "approve" }, { type: "reject", message: "too dear" }];
    const result = await open().invoke(resume({ decisions }), as("ada"));
    expect(result.execution.status).toBe("completed");
    expect(paid).toEqual([{ order: "1", amount: 5 }]);
    expect(model.prompts[1]).toContain("1.0 pay ok: text:\npaid\n");
    expect(model.prompts[1]).toContain("1.1 pay refused: too dear");
  });

  test("one word for two requests answers neither", async () => {
    const { paid, open } = payments(true, [{ calls: [pay("1", 5), pay("2", 6)], next: "done" }]);
    await open().invoke({ message: "go" }, config);
    await expect(open().invoke(resume("approve"), as("ada"))).rejects.toMatchObject({ code: "AMBIGUOUS_REPLY" });
    expect(paid).toEqual([]);
  });

  test("K5: after a restart a rejection still means that it does not run", async () => {
    const rule = ({ amount }: Arguments) => amount > 100;
    const { paid, open, model } = payments(rule, [{ calls: [pay("1", 500)], next: "done" }, { next: "done" }]);
    await open().invoke({ message: "go" }, config);
    const result = await open().invoke(resume({ type: "reject", message: "no" }), config);
    expect(result.execution.status).toBe("completed");
    expect(paid).toEqual([]);
    expect(model.prompts[1]).toContain("pay refused: no");
  });
});

describe("edits", () => {
  test("texts from a form become what the schema wants", async () => {
    const { paid, open } = payments(true, once);
    await open().invoke({ message: "go" }, config);
    const reply = [{ type: "edit", args: { action: "pay", args: { order: "1", amount: "3.5" } } }];
    await open().invoke(resume(reply), as("ada"));
    expect(paid).toEqual([{ order: "1", amount: 3.5 }]);
  });

  test.each([
    ["another tool", { name: "burn", args: { order: "1", amount: 3 } }],
    ["a missing argument", { name: "pay", args: { amount: 3 } }],
    ["a wrong argument", { name: "pay", args: { order: "1", amount: "much" } }],
  ])("an edit to %s is refused, and the approval still waits", async (_name, edited_action) => {
    const { paid, open } = payments(true, once);
    const paused = await open().invoke({ message: "go" }, config);
    const reply = resume({ decisions: [{ type: "edit", edited_action }] });
    await expect(open().invoke(reply, as("ada"))).rejects.toMatchObject({ code: "INVALID_REPLY" });
    expect(paid).toEqual([]);
    await open().invoke(answer(paused, "approve"), as("ada"));
    expect(paid).toEqual([{ order: "1", amount: 5 }]);
  });
});

describe("who approves", () => {
  test("one person cannot fill a quorum of two, by whatever form or process", async () => {
    const { paid, open } = payments(TWO, once);
    const paused = await open().invoke({ message: "go" }, config);
    await open().invoke(answer(paused, "approve"), as("ada"));
    for (const reply of [answer(paused, "approve"), resume("approve"), resume([{ type: "accept", args: null }])])
      await expect(open().invoke(reply, as("ada"))).rejects.toMatchObject({ code: "ALREADY_APPROVED" });
    expect((await describeTask(open().runtime.store, "t")).waiting).toMatchObject([{ count: 2, approvedBy: ["ada"] }]);
    expect(paid).toEqual([]);
    await open().invoke(answer(paused, "approve"), as("bob"));
    expect(paid).toHaveLength(1);
  });

  test("one person's no is enough", async () => {
    const { paid, open } = payments(TWO, [...once, { next: "done" }]);
    const paused = await open().invoke({ message: "go" }, config);
    await open().invoke(answer(paused, "approve"), as("ada"));
    expect((await open().invoke(answer(paused, "reject"), as("bob"))).execution.status).toBe("completed");
    expect(paid).toEqual([]);
  });

  const forged: readonly (readonly [string, unknown])[] = [
    ["nothing", undefined],
    ["a name", "ada"],
    ["an object with a name", { name: "ada" }],
    [
      "an object that looks like a person",
      Object.assign(Object.create(null) as object, { "#name": "ada", name: "ada" }),
    ],
    ["a person that went through JSON", JSON.parse(JSON.stringify(Object.values(signedIn("ada"))[0])) as unknown],
  ];
  test.each(forged)("a named approval is refused where the client sends %s as the person", async (_name, person) => {
    const { paid, open } = payments({ approvers: ["ada"] }, once);
    const paused = await open().invoke({ message: "go" }, config);
    const [key = ""] = Object.keys(signedIn("ada"));
    const configurable = { thread_id: "t", user: "ada", name: "ada", langgraph_auth_user_id: "ada", [key]: person };
    await expect(open().invoke(answer(paused, "approve"), { configurable })).rejects.toMatchObject({
      code: "APPROVER_UNKNOWN",
    });
    expect(paid).toEqual([]);
  });

  test("an edit by somebody who may not approve what it becomes still needs those who may", async () => {
    const rule = ({ amount }: Arguments) => amount > 100 && { approvers: ["ada"] };
    const edited = payments((args) => (args.amount === 5 ? true : rule(args)), once);
    await edited.open().invoke({ message: "go" }, config);
    const reply = { type: "edit", args: { order: "1", amount: 500 } };
    const again = await edited.open().invoke(resume(reply), as("eve"));
    expect(again[INTERRUPT]?.[0]?.value?.requests).toMatchObject([{ id: "a1.0.0e1", approvers: ["ada"] }]);
    expect(edited.paid).toEqual([]);
  });

  test("an empty name is nobody", () => {
    expect(() => signedIn(" ")).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
  });
});

describe("time", () => {
  test("an expired approval leads where the step's deadline says, and the call never runs", async () => {
    const script = [
      { calls: [pay("1", 5)], next: "done" },
      { patch: { note: "too late" }, next: "done" },
    ];
    const { paid, time, open, model } = payments(true, script, { deadline: true });
    const paused = await open().invoke({ message: "go" }, config);
    expect(paused[INTERRUPT]?.[0]?.value?.requests[0]?.expiresAt).toBe(time.now + TIME_LIMIT_MS);
    time.now += TIME_LIMIT_MS - 1;
    expect((await open().invoke(null, config)).execution.step).toBe("paying");
    time.now += 1;
    await expect(open().invoke(answer(paused, "approve"), as("ada"))).rejects.toMatchObject({
      code: "APPROVAL_EXPIRED",
    });
    const result = await open().invoke(null, config);
    expect(result).toMatchObject({ note: "too late", execution: { status: "completed" } });
    expect(result.execution.completedSteps).toEqual(["paying", "late"]);
    expect(model.prompts[1]).toContain("1.0 pay refused: the time to approve it is over");
    expect(paid).toEqual([]);
  });

  test("an approval that came in time holds, however late the call runs", async () => {
    const { paid, time, open } = payments(TWO, once, { deadline: true });
    const paused = await open().invoke({ message: "go" }, config);
    await open().invoke(answer(paused, "approve"), as("ada"));
    time.now += TIME_LIMIT_MS - 1;
    await open().invoke(answer(paused, "approve"), as("bob"));
    expect(paid).toHaveLength(1);
  });

  test("half a quorum is no approval when the time is over", async () => {
    const { paid, time, open } = payments(TWO, [...once, { next: "done" }], { deadline: true });
    const paused = await open().invoke({ message: "go" }, config);
    await open().invoke(answer(paused, "approve"), as("ada"));
    time.now += TIME_LIMIT_MS;
    await expect(open().invoke(answer(paused, "approve"), as("bob"))).rejects.toMatchObject({
      code: "APPROVAL_EXPIRED",
    });
    expect((await open().invoke(null, config)).execution.completedSteps).toEqual(["paying", "late"]);
    expect(paid).toEqual([]);
  });

  test("a question tells until when it may be answered", async () => {
    const { time, open } = payments(true, [{ ask: "Which?" }], { deadline: true });
    await open().invoke({ message: "go" }, config);
    expect((await describeTask(open().runtime.store, "t")).waiting).toEqual([
      { id: "q1.0", kind: "question", question: "Which?", expiresAt: time.now + TIME_LIMIT_MS },
    ]);
  });
});

test.each([
  ["nothing", () => undefined],
  ["null", () => null],
  ["a promise", () => Promise.reject(new Error("later"))],
  ["a count that is no number", () => ({ count: Number.NaN })],
  ["half a person", () => ({ count: 0.5 })],
  ["a time that is no number", () => ({ expiresAfterMs: Number.NaN })],
  ["a name in place of names", () => ({ approvers: "ada" })],
])("a rule that answers with %s lets nothing run", async (_what, rule) => {
  const { open, paid } = payments(rule as never, [{ calls: [pay("77", 5)], next: "done" }]);
  await expect(open().invoke({ message: "go" }, config)).rejects.toMatchObject({
    code: "STEP_FAILED",
    message: expect.stringContaining("gave no clear answer"),
  });
  expect(paid).toEqual([]);
});

test("who may not approve a call cannot say either that it has not happened, and so have it run again", async () => {
  const { open, paid, time } = payments({ approvers: ["ada"] }, [{ calls: [pay("77", 5)], next: "done" }]);
  await open().invoke({ message: "go" }, config);
  onFaultPoint((reached) => {
    if (reached === "after-call") throw new Error("killed");
  });
  onTestFinished(() => onFaultPoint(null));
  await expect(open().invoke(resume("approve"), as("ada"))).rejects.toThrow("killed");
  onFaultPoint(null);
  time.now += TIME_LIMIT_MS;
  const paused = await open().invoke(null, config);
  expect(paused[INTERRUPT]?.[0]?.value?.requests).toMatchObject([{ kind: "unknown", approvers: ["ada"] }]);
  for (const thread of [config, as("eve")])
    await expect(open().invoke(resume("reject"), thread)).rejects.toMatchObject({ code: "APPROVER_UNKNOWN" });
  expect(paid).toHaveLength(1);
  expect((await open().invoke(resume("approve"), as("ada"))).execution.status).toBe("completed");
  expect(paid).toHaveLength(1);
});
