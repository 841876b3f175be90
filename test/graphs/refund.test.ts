import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HumanMessage, type BaseMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import { answer, compile, describeTask, signedIn, sqliteStore, type WorkflowResult } from "statecard";
import { scriptedModel, type ScriptedAnswer } from "statecard/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { OfflineRules } from "../../graphs/offline-rules.ts";
import { ledgerOf, memoryLedger, type Payment } from "../../graphs/refund/ledger.ts";
import { amountIn, orderIn, reasonIn } from "../../graphs/refund/reading.ts";
import { decideRefund, refundRules } from "../../graphs/refund/rules.ts";
import { refund } from "../../graphs/refund/workflow.ts";
import { mermaidOf } from "../../src/cli/graph.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";

const DAY_MS = 86_400_000;
const as = (name: string) => ({ configurable: { thread_id: "t", ...signedIn(name) } });
const ask = (amount: number) => `refund ${amount} for order 77, arrived broken`;
const edit = (amount: number) => new Command({ resume: { type: "edit", args: { order: "77", amount } } });

function open(script?: readonly ScriptedAnswer[]) {
  const ledger = memoryLedger();
  const time = { now: Date.UTC(2030, 0, 1) };
  const clock = { now: () => time.now };
  const model = script ? scriptedModel([...script]) : refundRules();
  const graph = compile(refund, { model, clock, store: sqliteStore(":memory:", { clock }), clients: { ledger } });
  const waiting = async () => (await describeTask(graph.runtime.store, "t")).waiting ?? [];
  return { graph, ledger, time, waiting };
}

const statusOf = ({ execution }: WorkflowResult<(typeof refund)["state"]>) => execution.status;

test("its README shows its table", () => {
  expect(readFileSync("graphs/refund/README.md", "utf8")).toContain(mermaidOf(anyWorkflow(refund)));
});

describe("limits", () => {
  test.each([
    [49, 0],
    [99.99, 0],
    [100, 1],
    [1000, 1],
    [1000.01, 2],
    [4900, 2],
  ])("%d needs %d approvals", async (amount, people) => {
    const { graph, ledger, waiting } = open();
    let result = await graph.invoke({ message: ask(amount) }, as("eve"));
    for (const name of ["ada", "bob"].slice(0, people)) {
      expect(ledger.all).toEqual([]);
      expect(await waiting()).toMatchObject([{ kind: "approval", tool: "pay_back", args: { order: "77", amount } }]);
      result = await graph.invoke(answer(result, "approve"), as(name));
    }
    expect(result).toMatchObject({ amount, execution: { status: "completed", step: "closed" } });
    expect(ledger.all).toMatchObject([{ order: "77", amount, receipt: result.receipt, taskId: "t" }]);
  });

  test("an edit above the next limit needs two people, of whom the editor is one", async () => {
    const { graph, ledger, waiting } = open();
    await graph.invoke({ message: ask(500) }, as("eve"));
    const edited = await graph.invoke(edit(5000), as("ada"));
    expect(await waiting()).toMatchObject([{ args: { amount: 5000 }, count: 2, approvedBy: ["ada"] }]);
    await expect(graph.invoke(answer(edited, "approve"), as("ada"))).rejects.toMatchObject({
      code: "ALREADY_APPROVED",
    });
    const done = await graph.invoke(answer(edited, "approve"), as("bob"));
    expect(done).toMatchObject({ amount: 5000, outcome: "paid back 5,000" });
    expect(ledger.all).toMatchObject([{ amount: 5000 }]);
  });

  test("an edit to less is paid as it was edited", async () => {
    const { graph, ledger } = open();
    await graph.invoke({ message: ask(500) }, as("eve"));
    const done = await graph.invoke(edit(50), as("ada"));
    expect(done).toMatchObject({ amount: 50, outcome: "paid back 50" });
    expect(ledger.all).toMatchObject([{ amount: 50 }]);
  });

  test.each([
    ["another amount", { order: "77", amount: 60 }],
    ["another order", { order: "78", amount: 49 }],
  ])("a model that would pay %s than the customer asked for needs a person", async (_name, args) => {
    const known = { order: "77", amount: 49, reason: "broken" };
    const { graph, ledger, waiting } = open([{ next: "paying" }, { calls: [{ tool: "pay_back", args }] }]);
    await graph.invoke({ message: "hello", ...known }, as("eve"));
    expect(await waiting()).toMatchObject([{ kind: "approval", args }]);
    expect(ledger.all).toEqual([]);
  });

  test("a model that pays twice pays once", async () => {
    const known = { order: "77", amount: 49, reason: "broken" };
    const calls = [{ tool: "pay_back", args: { order: "77", amount: 49 } }];
    const script = [{ next: "paying" }, { calls }, { calls }, { patch: { outcome: "paid" }, next: "closed" }];
    const { graph, ledger } = open(script);
    expect(statusOf(await graph.invoke({ message: "hello", ...known }, as("eve")))).toBe("completed");
    expect(ledger.all).toHaveLength(1);
  });
});

describe("a refund that is not approved", () => {
  test("is closed with the reason, which the customer is told", async () => {
    const { graph, ledger } = open();
    const paused = await graph.invoke({ message: ask(490) }, as("eve"));
    const reply = { type: "reject" as const, message: "the order is three years old" };
    const done = await graph.invoke(answer(paused, reply), as("ada"));
    expect(done).toMatchObject({ outcome: "not paid back: the order is three years old", receipt: null });
    expect(ledger.all).toEqual([]);
  });

  test("in time goes back to the customer, who can have it asked again", async () => {
    const { graph, ledger, time, waiting } = open();
    await graph.invoke({ message: ask(490) }, as("eve"));
    time.now += DAY_MS;
    const late = await graph.invoke(null, as("eve"));
    const question = "Nobody approved 490 for order 77 in time. Shall I ask again?";
    expect(late.execution).toMatchObject({ status: "waiting_user", step: "talking" });
    expect(await waiting()).toMatchObject([{ kind: "question", question }]);
    const again = await graph.invoke(answer(late, "yes please"), as("eve"));
    expect(await waiting()).toMatchObject([{ kind: "approval", args: { amount: 490 }, expiresAt: time.now + DAY_MS }]);
    expect(statusOf(await graph.invoke(answer(again, "approve"), as("ada")))).toBe("completed");
    expect(ledger.all).toHaveLength(1);
  });

  test.each([
    [["no, forget it"], "not paid back: nobody approved it in time"],
    [["hm", "what?"], "not paid back: nobody approved it in time"],
  ])("and that the customer does not want again (%j) is closed", async (texts, outcome) => {
    const { graph, ledger, time } = open();
    await graph.invoke({ message: ask(490) }, as("eve"));
    time.now += DAY_MS;
    let result = await graph.invoke(null, as("eve"));
    for (const text of texts) result = await graph.invoke(answer(result, text), as("eve"));
    expect(result).toMatchObject({ outcome, execution: { status: "completed" } });
    expect(ledger.all).toEqual([]);
  });
});

describe("conversations", () => {
  const conversations: readonly (readonly [string, readonly string[], readonly string[], object])[] = [
    [
      "English",
      ["Hello!", "77", "about 40 euros", "the cup arrived broken"],
      ["Which order is it about?", "How much would you like back?", "What was wrong with it?"],
      { order: "77", amount: 40, reason: "the cup arrived broken", outcome: "paid back 40" },
    ],
    [
      "Chinese",
      ["你好", "订单 A-77", "40元", "收到时已经坏了"],
      ["请问是哪个订单?", "您希望退款多少?", "请问是什么问题?"],
      { order: "A-77", amount: 40, reason: "收到时已经坏了", outcome: "已退款 40" },
    ],
    ["one message", ["订单77退款49元,收到时已损坏"], [], { order: "77", amount: 49, reason: "收到时已损坏" }],
    [
      "nothing useful",
      ["hello", "hm", "what?"],
      ["Which order is it about?", "Which order is it about?"],
      { order: null, outcome: "not paid back: the request stayed incomplete" },
    ],
  ];
  test.each(conversations)("%s", async (_name, [message = "", ...answers], questions, state) => {
    const { graph, waiting } = open();
    let result = await graph.invoke({ message }, as("eve"));
    const asked: string[] = [];
    for (const text of answers) {
      asked.push((await waiting())[0]?.question ?? "");
      result = await graph.invoke(answer(result, text), as("eve"));
    }
    expect(asked).toEqual(questions);
    expect(result).toMatchObject({ ...state, execution: { status: "completed" } });
  });

  test("each decision can be had again from its prompt alone", async () => {
    const seen: { prompt: BaseMessage[]; text: string }[] = [];
    class Recording extends OfflineRules {
      override async _generate(messages: BaseMessage[]) {
        const result = await super._generate(messages);
        seen.push({ prompt: messages, text: result.generations[0]?.text ?? "" });
        return result;
      }
    }
    const options = { model: new Recording(decideRefund), clients: { ledger: memoryLedger() } };
    const graph = compile(refund, { ...options, store: sqliteStore(":memory:") });
    const paused = await graph.invoke({ message: ask(490) }, as("eve"));
    await graph.invoke(answer(paused, "approve"), as("ada"));
    expect(seen).toHaveLength(3);
    for (const { prompt, text } of seen.toReversed()) expect((await refundRules().invoke(prompt)).text).toBe(text);
    const blind = (seen[1]?.prompt ?? []).map(
      (message) => new HumanMessage(message.text.replace("amount: 490", "amount: -")),
    );
    expect((await refundRules().invoke(blind)).text).not.toBe(seen[1]?.text);
  });
});

describe("what a text says", () => {
  test.each([
    ["refund 49 for order 77, arrived broken", "77", 49, "arrived broken"],
    [
      "I want a refund of $1,234.50 for order #A-9 because the screen is cracked",
      "A-9",
      1234.5,
      "the screen is cracked",
    ],
    ["Please pay back 12.5 euros. Order no. 5. It never came!", "5", 12.5, "It never came"],
    ["I bought 3 cups, order 77. Two are chipped.", "77", null, "I bought 3 cups, Two are chipped"],
    ["订单号:88,退款 300 元,因为尺寸不对", "88", 300, "尺寸不对"],
    ["Hello", null, null, null],
  ])("%s", (text, order, amount, reason) => {
    expect([orderIn(text, false), amountIn(text, false), reasonIn(text, false)]).toEqual([order, amount, reason]);
  });
});

describe("the ledger in a file", () => {
  const paid: Payment = { key: "t/2.0/x", taskId: "t", order: "77", amount: 5, receipt: "R-1" };
  const { reconcile } = refund.tools.pay_back ?? {};
  const inFile = () => {
    const folder = mkdtempSync(join(tmpdir(), "statecard-ledger-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    return join(folder, "deep", "refunds.jsonl");
  };
  const look = (ledger: string, idempotencyKey: string) =>
    reconcile?.({} as never, {
      taskId: "t",
      step: "paying",
      idempotencyKey,
      clients: { ledger },
      clock: { now: () => 0 },
      signal: AbortSignal.timeout(1000),
      state: {},
      artifacts: { read: async () => null, list: async () => [] },
    });

  test("tells whether a payment was made, before and after there is a file", async () => {
    const file = inFile();
    expect(await look(file, paid.key)).toEqual({ happened: false });
    await ledgerOf({ ledger: file }).add(paid);
    expect(await look(file, paid.key)).toEqual({ happened: true, value: { receipt: "R-1" } });
    expect(await look(file, "t/3.0/y")).toEqual({ happened: false });
  });

  test("cannot tell where half a line was written, and the next payment does not suffer from it", async () => {
    const file = inFile();
    const ledger = ledgerOf({ ledger: file });
    await ledger.add(paid);
    appendFileSync(file, '{"key":"t/3.0');
    expect(await look(file, "t/3.0/y")).toBeNull();
    await ledger.add({ ...paid, key: "t/4.0/z" });
    expect((await ledger.payments()).all.map(({ key }) => key)).toEqual([paid.key, "t/4.0/z"]);
  });
});
