import { existsSync, readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import {
  atTerminal,
  eventsOf,
  expectRefusal,
  followHint,
  hasPython,
  ISO_TIME,
  jsonOf,
  ownDatabase,
  projectFolder,
  shareOneProcess,
  statecard,
  taskOf,
  type CommandOptions,
  type CommandResult,
} from "../support/cli.ts";

shareOneProcess();

const ME = userInfo().username;
const refundOf = (amount: number) => ["--message", `refund ${amount} for order 77, arrived broken`];

/** A database and a ledger of its own, and a task that waits for an approval of this amount. */
async function waitingRefund(amount: number) {
  const { database, environment } = await ownDatabase();
  const ledger = join(database, "../refunds.jsonl");
  const own = { database, ledger, environment: { ...environment, REFUND_LEDGER: ledger } };
  const started = await statecard(["run", "refund", "--task", "r-1", ...refundOf(amount)], own);
  expect(started).toMatchObject({ code: 10, stderr: "" });
  const withToken = (token: string): CommandOptions => ({
    environment: { ...own.environment, STATECARD_TOKEN: token },
  });
  return { ...own, started, withToken };
}

const paidIn = (ledger: string) =>
  existsSync(ledger) ? readFileSync(ledger, "utf8").split("\n").filter(Boolean).length : 0;

async function tokenOf(name: string, own: CommandOptions): Promise<string> {
  const made = await statecard(["token", "create", name, "--json"], own);
  expect(made).toMatchObject({ code: 0, stderr: "" });
  return (jsonOf(made) as { token: string }).token;
}

/** Two payments in one decision, one of which only ada may approve; and a step whose time is always over. */
const TWO = `
  import { compile, defineTool, defineWorkflow, field } from "statecard";
  import { z } from "zod";
  const pay = defineTool({ description: "Pays.", parameters: z.object({ amount: z.number() }), effect: "write", run: () => "paid" });
  const late = process.env.LATE === "1";
  export const graph = compile(defineWorkflow({
    name: "two", version: 1, state: { note: field(z.string()) }, tools: { pay }, initial: "pay",
    steps: {
      pay: {
        tools: ["pay"], to: ["pay", "ask"], deadline: { afterMs: 1e8, to: "ask" },
        approve: { pay: ({ amount }) => (amount === 2 ? { approvers: ["ada", "bob"], count: late ? 1 : 2 } : true) },
        run: () => ({ calls: [1, 2].map((amount) => ({ tool: "pay", args: { amount } })), next: "ask" }),
      },
      ask: { to: ["done"], run: (_state, { observation }) => observation?.kind === "answer"
        ? { patch: { note: observation.text }, next: "done" } : { ask: "And now?" } },
      done: { final: true },
    },
  }));`;

describe("an approval is asked for and given", () => {
  test("by what run, show, tasks and approvals print, and the command that they print works", async () => {
    const { started, ledger, ...own } = await waitingRefund(490);
    const asks = "waiting for an approver: pay_back: order 77, amount 490";
    for (const { stdout } of [started, await statecard(["show", "r-1"], own)]) {
      expect(stdout).toContain(`${asks}   expires in 24 h`);
      expect(stdout).toContain("npx statecard resume r-1 --approve");
      expect(stdout).toContain('npx statecard resume r-1 --reject "..."');
      expect(stdout).toContain(`npx statecard resume r-1 --edit '{"order":"77","amount":490}'`);
    }
    expect((await statecard(["tasks"], own)).stdout).toMatch(
      new RegExp(`^r-1 +refund v1 +${asks} .*expires in 24 h$`, "m"),
    );
    const listed = await statecard(["approvals"], own);
    expect(listed.stdout).toContain(`r-1  refund v1  ${asks}   expires in 24 h`);

    const done = await followHint(listed.stdout, "", own);
    expect(done).toMatchObject({ code: 0, stderr: "" });
    expect(done.stdout).toContain("paid back 490");
    expect(paidIn(ledger)).toBe(1);
    expect((await statecard(["history", "r-1"], own)).stdout).toContain(`${ME} approved a2.0.0`);
    expect((await statecard(["approvals"], own)).stdout).toBe("No approval is open.\n");
  });

  test("in JSON with everything that a program needs", async () => {
    const own = await waitingRefund(4900);
    const request = {
      kind: "approval",
      question: "pay_back: order 77, amount 4900",
      tool: "pay_back",
      args: { order: "77", amount: 4900 },
      count: 2,
      approvedBy: [],
      expiresAt: expect.stringMatching(ISO_TIME) as string,
    };
    expect(taskOf(await statecard(["show", "r-1", "--json"], own)).waiting).toEqual([{ id: "a2.0.0", ...request }]);
    expect(jsonOf(await statecard(["approvals", "--json"], own))).toEqual({
      approvals: [{ taskId: "r-1", workflow: "refund", requestId: "a2.0.0", ...request }],
    });
    expect(jsonOf(await statecard(["tasks", "--json"], own))).toMatchObject({ tasks: [{ waiting: [request] }] });
  });

  test("or refused, with a reason that the customer is told", async () => {
    const { ledger, ...own } = await waitingRefund(490);
    const refused = await statecard(["resume", "r-1", "--reject", "too old"], own);
    expect(refused).toMatchObject({ code: 0, stderr: "" });
    expect(refused.stdout).toContain("the refund was not approved: too old");
    expect(paidIn(ledger)).toBe(0);
    expect((await statecard(["history", "r-1"], own)).stdout).toContain(`${ME} rejected a2.0.0: too old`);
  });

  test("or changed: the other arguments stay, and what it becomes is checked again", async () => {
    const { ledger, ...own } = await waitingRefund(490);
    await expectRefusal(
      ["resume", "r-1", "--edit", '{"amount": "much"}'],
      { code: "INVALID_REPLY", exit: 3, says: /amount/ },
      own,
    );
    const more = await statecard(["resume", "r-1", "--edit", '{"amount": 5000}', "--json"], own);
    expect(more.code).toBe(10);
    expect(taskOf(more).waiting).toMatchObject([{ args: { order: "77", amount: 5000 }, count: 2, approvedBy: [ME] }]);
    const less = await statecard(["resume", "r-1", "--edit", '{"amount": 50}', "--json"], own);
    expect(taskOf(less)).toMatchObject({ status: "completed", state: { amount: 50 } });
    expect(paidIn(ledger)).toBe(1);
  });
});

describe("who answers", () => {
  test("is the operating system's user, whatever the environment says; questions too", async () => {
    const { environment } = await ownDatabase();
    const own = { environment: { ...environment, USER: "ada", LOGNAME: "ada", USERNAME: "ada" } };
    await statecard(["run", "ticket", "--task", "t-1"], own);
    await statecard(["resume", "t-1", "--answer", "network"], own);
    const answered = eventsOf(await statecard(["history", "t-1", "--json"], own)).find(
      ({ kind }) => kind === "answered",
    );
    expect(answered?.data).toMatchObject({ who: ME });
  });

  test("one person cannot be two: not twice, and not with a token of the same name", async () => {
    const { ledger, withToken, ...own } = await waitingRefund(4900);
    const approve = ["resume", "r-1", "--approve"];
    const half = await statecard(approve, own);
    expect(half.code).toBe(10);
    expect(half.stdout).toContain(`waiting for 1 more of 2 approvers (approved by ${ME})`);
    expect(half.stdout).toContain('npx statecard resume r-1 --as "..." --approve');
    const already = { code: "ALREADY_APPROVED", exit: 3, says: new RegExp(`approved by ${ME} already`) };
    await expectRefusal(approve, already, own);
    await expectRefusal([...approve, "--as", ME], already, withToken(await tokenOf(ME, own)));
    expect(paidIn(ledger)).toBe(0);

    const done = await statecard([...approve, "--as", "ada"], withToken(await tokenOf("ada", own)));
    expect(done).toMatchObject({ code: 0, stderr: "" });
    expect(paidIn(ledger)).toBe(1);
    const history = await statecard(["history", "r-1"], own);
    expect(history.stdout).toMatch(new RegExp(`${ME} approved a2.0.0, one of several.*\\n.*ada approved a2.0.0\n`));
  });

  test("a person who is not named is refused, and told as whom it would work", async () => {
    const folder = await projectFolder({ "two.ts": TWO });
    const own = { folder };
    const started = await statecard(["run", "two.ts", "--task", "p-1"], own);
    expect(started.stdout).toMatch(/waiting for 2 of ada, bob: pay: amount 2 .*\(a1\.1\.0\)$/m);
    expect(started.stdout).toContain("npx statecard resume p-1 --request a1.1.0 --as ada --approve");
    const says = new RegExp(`takes no answer from ${ME}; it is for ada, bob`);
    const args = ["resume", "p-1", "--request", "a1.1.0", "--approve"];
    await expectRefusal(args, { code: "APPROVER_UNKNOWN", exit: 3, says }, own);
  });
});

describe("tokens", () => {
  const resume = ["resume", "r-1", "--approve", "--as", "ada"];
  const refusal = (says: RegExp) => ({ code: "INVALID_TOKEN", exit: 3, says });

  test("are shown once and known to nobody else: not in outputs, the history or the database", async () => {
    const { database, ledger, withToken, ...own } = await waitingRefund(490);
    const made = await statecard(["token", "create", "ada"], own);
    const [token = ""] = /^sc_[\w-]{43}$/m.exec(made.stdout) ?? [];
    expect(token).not.toBe("");
    const outputs: CommandResult[] = [
      await statecard(["token", "list"], own),
      await statecard(["token", "list", "--json"], own),
      await statecard([...resume, "--json"], withToken(`${token}x`)),
      await statecard(["resume", "r-1", "--approve", "--as", token], own),
      await statecard(["token", "revoke", token], own),
      await statecard([...resume, "--json"], withToken(`${token}\n`)),
      await statecard(["history", "r-1", "--json"], own),
    ];
    expect(outputs.map(({ code }) => code)).toEqual([0, 0, 3, 2, 2, 0, 0]);
    for (const { stdout, stderr } of outputs) expect(`${stdout}${stderr}`).not.toContain(token.slice(3, 20));
    for (const file of [database, `${database}-wal`, ledger].filter((each) => existsSync(each)))
      expect(readFileSync(file).includes(token.slice(3))).toBe(false);
    expect(outputs[0]?.stdout).toMatch(/^ada {2}since \d{4}-\d\d-\d\d\n$/);
  });

  test("that are missing, wrong, another's, replaced or revoked are refused", async () => {
    const { ledger, withToken, ...own } = await waitingRefund(490);
    await expectRefusal(resume, refusal(/STATECARD_TOKEN/), own);
    await expectRefusal(resume, refusal(/not the token of ada/), withToken("guess"));
    const bobs = await tokenOf("bob", own);
    await expectRefusal(resume, refusal(/not the token of ada/), withToken(bobs));
    const old = await tokenOf("ada", own);
    const again = await statecard(["token", "create", "ada"], own);
    expect(again.stdout).toContain("the one before is no longer valid");
    await expectRefusal(resume, refusal(/not the token of ada/), withToken(old));
    const [token = ""] = /^sc_\S+$/m.exec(again.stdout) ?? [];
    expect((await statecard(["token", "revoke", "ada"], own)).stdout).toContain("no longer valid");
    await expectRefusal(resume, refusal(/not the token of ada/), withToken(token));
    expect((await statecard(["token", "revoke", "ada"], own)).stderr).toContain("INVALID_TOKEN: ada has no token");
    expect(jsonOf(await statecard(["token", "list", "--json"], own))).toMatchObject({ tokens: [{ name: "bob" }] });
    expect(paidIn(ledger)).toBe(0);
  });

  test.each([
    ["no name", ["token", "create"], /needs the name/],
    ["a name for list", ["token", "list", "ada"], /takes no name/],
    ["an unknown action", ["token", "steal", "ada"], /create, list, revoke/],
    ["an empty name", ["token", "create", " "], /1 to 64 characters/],
    ["a name that would steer a terminal", ["token", "create", "a\u001b[2J"], /control characters/],
    ["--as without an answer", ["resume", "r-1", "--as", "ada"], /--as names who answers/],
  ])("%s is a wrong command line", async (_name, args, says) => {
    await expectRefusal(args, { code: "USAGE", exit: 2, says }, await ownDatabase());
  });
});

describe("an unclear or late answer changes nothing", () => {
  test.each([
    ["two answers", ["--approve", "--reject", "no"], "USAGE", 2, /--approve and --reject/],
    ["a rejection without a reason", ["--reject", " "], "USAGE", 2, /needs a reason/],
    ["an edit that is no JSON", ["--edit", "amount=5"], "USAGE", 2, /JSON object/],
    ["an edit that is no object", ["--edit", "5"], "USAGE", 2, /JSON object/],
    ["an edit of nothing", ["--edit", "{}"], "USAGE", 2, /JSON object/],
    ["an edit with a typo", ["--edit", '{"Amount": 50}'], "INVALID_REPLY", 3, /no argument "Amount".*order, amount/],
    ["a text", ["--answer", "yes"], "INVALID_REPLY", 3, /asks for an approval.*--approve or --reject or --edit/],
    ["an unknown request", ["--request", "a9.9.9", "--approve"], "UNKNOWN_REQUEST", 3, /open now: a2\.0\.0/],
  ] as const)("%s", async (_name, args, code, exit, says) => {
    const { ledger, ...own } = await waitingRefund(490);
    await expectRefusal(["resume", "r-1", ...args], { code, exit, says }, own);
    expect(paidIn(ledger)).toBe(0);
  });

  test("an approval of a question", async () => {
    const own = await ownDatabase();
    await statecard(["run", "ticket", "--task", "t-1"], own);
    const says = /asks a question: answer it with --answer/;
    await expectRefusal(["resume", "t-1", "--approve"], { code: "INVALID_REPLY", exit: 3, says }, own);
  });

  test("one answer where several are open, until one is named; one that was used", async () => {
    const own = { folder: await projectFolder({ "two.ts": TWO }) };
    await statecard(["run", "two.ts", "--task", "p-1"], own);
    const says = /a1\.0\.0 \(pay: amount 1\), a1\.1\.0 \(pay: amount 2\).*--request/;
    await expectRefusal(["resume", "p-1", "--approve"], { code: "AMBIGUOUS_REPLY", exit: 3, says }, own);
    const named = await statecard(["resume", "p-1", "--request", "a1.0.0", "--approve", "--json"], own);
    expect(taskOf(named).waiting).toMatchObject([{ id: "a1.1.0" }]);
    const stale = ["resume", "p-1", "--request", "a1.0.0", "--approve"];
    await expectRefusal(stale, { code: "STALE_RESUME", exit: 3, says: /a1\.0\.0.*open now: a1\.1\.0/ }, own);
    for (const name of ["ada", "bob"]) {
      const environment = { STATECARD_TOKEN: await tokenOf(name, own) };
      await statecard(["resume", "p-1", "--approve", "--as", name], { ...own, environment });
    }
    await expectRefusal(stale, { code: "APPROVAL_USED", exit: 3, says: /used already/ }, own);
  });

  test("one that comes too late: the task goes on by the command that is printed", async () => {
    const { database, environment } = await ownDatabase();
    const own = { folder: await projectFolder({ "two.ts": TWO }), environment: { ...environment, LATE: "1" } };
    await statecard(["run", "two.ts", "--task", "p-1"], own);
    const file = new Database(database);
    const update = "update statecard_requests set expires_at = ?, request = json_set(request, '$.expiresAt', ?)";
    const past = Date.now() - 2 * 3_600_000;
    expect(file.prepare(update).run(past, past).changes).toBe(2);
    file.close();
    expect((await statecard(["show", "p-1"], own)).stdout).toMatch(/expired 2 h ago/);
    const approve = ["resume", "p-1", "--request", "a1.0.0", "--approve"];
    const [late] = await expectRefusal(approve, { code: "APPROVAL_EXPIRED", exit: 3, says: /expired at/ }, own);
    expect((await statecard(["approvals"], own)).stdout).toContain("too late, go on with:  npx statecard resume p-1\n");
    const next = await followHint(late?.stderr ?? "", "", own);
    expect(next.code).toBe(10);
    expect(next.stdout).toContain("And now?");
  });

  test("K19: one to arguments that were edited in the database", async () => {
    const { database, ledger, ...own } = await waitingRefund(490);
    const file = new Database(database);
    const update = "update statecard_requests set request = replace(request, '\"amount\":490', '\"amount\":9490')";
    expect(file.prepare(update).run().changes).toBe(1);
    file.close();
    const says = /changed after it was asked/;
    await expectRefusal(["resume", "r-1", "--approve"], { code: "APPROVAL_CHANGED", exit: 3, says }, own);
    expect(paidIn(ledger)).toBe(0);
  });

  test("K1: of two processes that approve at once one pays", async () => {
    const { ledger, ...own } = await waitingRefund(490);
    const args = ["resume", "r-1", "--approve", "--json"];
    const results = await Promise.all([1, 2].map(() => statecard(args, { ...own, ownProcess: true })));
    expect(results.map(({ code }) => code).toSorted((a, b) => Number(a) - Number(b))).toEqual([0, 3]);
    expect(paidIn(ledger)).toBe(1);
  });
});

describe("in a chat", () => {
  test("a piped line approves only as that word; anything else is said to be unclear", async () => {
    const { ledger, ...own } = await waitingRefund(490);
    const unclear = await statecard(["resume", "r-1", "--chat"], {
      ...own,
      input: "yes\napprove it\nreject\nedit 5\n",
    });
    expect(unclear).toMatchObject({ code: 10, stderr: "" });
    expect(unclear.stdout.match(/Nothing was answered/g)).toHaveLength(4);
    expect(paidIn(ledger)).toBe(0);
    const done = await statecard(["resume", "r-1", "--chat"], { ...own, input: 'edit {"amount": 60}\n' });
    expect(done).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(ledger, "utf8")).toContain('"amount":60');
  });

  test("a person who has approved is not asked again: others have to", async () => {
    const { ledger, ...own } = await waitingRefund(4900);
    const chat = await statecard(["resume", "r-1", "--chat"], { ...own, input: "approve\napprove\n" });
    expect(chat).toMatchObject({ code: 10, stderr: "" });
    expect(chat.stdout).toContain(`waiting for 1 more of 2 approvers (approved by ${ME})`);
    expect(chat.stdout).toMatch(
      /Paused, nothing lost\. Go on with: {2}npx statecard resume r-1 --as "\.\.\." --approve/,
    );
    expect(paidIn(ledger)).toBe(0);
  });

  test.skipIf(!hasPython)("a person types a letter, and a token without showing it", async () => {
    const { withToken: _unused, ledger, ...own } = await waitingRefund(4900);
    const token = await tokenOf("ada", own);
    const first = await atTerminal(["resume", "r-1", "--chat"], [["a = approve, r = reject, e = edit", "a\r"]], own);
    expect(first).toMatchObject({ code: 10, left: 0 });
    const steps = [
      ["Token of ada: ", `${token}\r`],
      ["a = approve", "r\r"],
      ["Why\\?", "too dear\r"],
    ] as const;
    const second = await atTerminal(["resume", "r-1", "--chat", "--as", "ada"], steps, own);
    expect(second).toMatchObject({ code: 0, left: 0 });
    expect(second.output).not.toContain(token.slice(3));
    expect(paidIn(ledger)).toBe(0);
    expect((await statecard(["history", "r-1"], own)).stdout).toContain("ada rejected a2.0.0: too dear");
  });
});
