import fc from "fast-check";
import { NAMED_REPLIES, readReplies } from "../../src/people/replies.ts";
import { requestDigest, type Answer, type Request } from "../../src/people/requests.ts";
import { describe, expect, test } from "vitest";

function request(kind: Request["kind"], id: string, args?: Request["args"]): Request {
  const content = { kind, question: `${id}?`, ...(args ? { tool: "pay", args } : {}) };
  return { id, ...content, digest: requestDigest(content) };
}

const first = request("approval", "a1.0.0", { order: "77", amount: 5 });
const second = request("approval", "a1.1.0", { order: "78", amount: 6 });
const unknown = request("unknown", "u1.0.0", { order: "77", amount: 5 });
const question = request("question", "q1.0");

const answerTo = (reply: unknown, only: Request = first): Answer | undefined => readReplies(reply, [only])[0]?.answer;
const refusal = (read: () => unknown): string => {
  try {
    return JSON.stringify(read());
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
};

const APPROVED: Answer = { type: "approve" };
const edited = (amount: unknown): Answer => ({ type: "edit", args: { order: "77", amount } });

describe("the reply forms of the existing clients", () => {
  const action = (amount: unknown) => ({ order: "77", amount });
  const forms: readonly (readonly [client: string, reply: unknown, means: Answer])[] = [
    ["Agent Inbox accepts what it shows", [{ type: "accept", args: { action: "pay", args: action("5") } }], APPROVED],
    ["Agent Inbox accepts", [{ type: "accept", args: null }], APPROVED],
    ["Agent Inbox ignores", [{ type: "ignore", args: null }], { type: "reject", reason: "" }],
    ["Agent Inbox answers", [{ type: "response", args: "too dear" }], { type: "reject", reason: "too dear" }],
    ["Agent Inbox edits", [{ type: "edit", args: { action: "pay", args: action("7") } }], edited("7")],
    ["Agent Chat UI approves", { decisions: [{ type: "approve" }] }, APPROVED],
    ["Agent Chat UI rejects", { decisions: [{ type: "reject", message: "no" }] }, { type: "reject", reason: "no" }],
    [
      "Agent Chat UI edits",
      { decisions: [{ type: "edit", edited_action: { name: "pay", args: action(7) } }] },
      edited(7),
    ],
    [
      "the middleware edits",
      { decisions: [{ type: "edit", editedAction: { name: "pay", args: action(7) } }] },
      edited(7),
    ],
    ["the middleware responds", { decisions: [{ type: "respond", message: "no" }] }, { type: "reject", reason: "no" }],
    ["a word approves", "approve", APPROVED],
    ["a word in capitals approves", " Approve ", APPROVED],
    ["a word rejects", "reject", { type: "reject", reason: "" }],
    ["a plain edit", { type: "edit", args: action(7) }, edited(7)],
    ["a map from ids", { "a1.0.0": { type: "approve" } }, APPROVED],
    ["LangGraph's interrupt id", { ["0".repeat(32)]: { decisions: [{ type: "approve" }] } }, APPROVED],
    ["answer()", { [NAMED_REPLIES]: [{ id: "a1.0.0", shown: first.digest, reply: "approve" }] }, APPROVED],
  ];
  test.each(forms)("%s", (_name, reply, means) => {
    expect(readReplies(reply, [first])).toEqual([{ id: "a1.0.0", shown: first.digest, answer: means }]);
  });

  test.each([
    ["Agent Inbox", [{ type: "response", args: "blue" }]],
    ["the middleware", { decisions: [{ type: "respond", message: "blue" }] }],
    ["a text", "blue"],
    ["a map", { "q1.0": "blue" }],
  ])("%s answers a question", (_name, reply) => {
    expect(answerTo(reply, question)).toEqual({ type: "text", text: "blue" });
  });

  test("two decisions are taken in order, and by id where ids are given", () => {
    const decisions = [{ type: "approve" }, { type: "reject", message: "no" }];
    const verdicts = (reply: unknown) =>
      Object.fromEntries(readReplies(reply, [first, second]).map(({ id, answer }) => [id, answer.type]));
    expect(verdicts({ decisions })).toEqual({ "a1.0.0": "approve", "a1.1.0": "reject" });
    const [approve, reject] = decisions;
    expect(
      verdicts({
        decisions: [
          { ...approve, id: "a1.1.0" },
          { ...reject, id: "a1.0.0" },
        ],
      }),
    ).toEqual({
      "a1.0.0": "reject",
      "a1.1.0": "approve",
    });
    expect(verdicts({ decisions: [{ ...approve, id: "a1.1.0" }] })).toEqual({ "a1.1.0": "approve" });
  });

  test.each([
    ["a workflow in a step", "w3.0/a1.0.0", "w3.0/a1.1.0"],
    ["two items of a list", "w3.0.0/a1.0.0", "w3.0.1/a1.0.0"],
    ["lists in lists", "w3.0.0/w1.0.2/u1.0.0e2", "w3.0.1/w1.0.2/u1.0.0e2"],
  ])("requests of %s are told apart by their ids, in any order", (_what, one, other) => {
    const shown = [one, other].map((id) => request("approval", id, { order: id }));
    const decisions = [
      { type: "approve", id: other },
      { type: "reject", id: one },
    ];
    for (const reply of [{ decisions }, decisions]) {
      const read = readReplies(reply, shown).map(({ id, answer }) => [id, answer.type]);
      expect(read).toEqual([
        [other, "approve"],
        [one, "reject"],
      ]);
    }
  });
});

describe("nothing unclear is an answer", () => {
  test.each([
    ["an edit that changes the tool (Agent Inbox)", [{ type: "edit", args: { action: "burn", args: { amount: 5 } } }]],
    [
      "an edit that changes the tool (Agent Chat UI)",
      { decisions: [{ type: "edit", edited_action: { name: "burn", args: { amount: 5 } } }] },
    ],
    [
      "an edit that changes the tool (middleware)",
      { decisions: [{ type: "edit", editedAction: { name: "burn", args: { amount: 5 } } }] },
    ],
    ["an edit without arguments", { type: "edit" }],
    ["an edit whose arguments are a text", { type: "edit", args: "5" }],
    ["an approval that changes arguments", { type: "approve", args: { order: "77", amount: 5000 } }],
    [
      "an approval that changes arguments (Agent Chat UI)",
      { decisions: [{ type: "approve", edited_action: { name: "pay", args: { order: "77", amount: 5000 } } }] },
    ],
    [
      "an approval that names another tool",
      [{ type: "accept", args: { action: "burn", args: { order: "77", amount: 5 } } }],
    ],
    ["nothing", null],
    ["an empty object", {}],
    ["a sentence", "yes, but only if it is cheap"],
    ["an approval as a field", { approve: true }],
    ["a number", 1],
  ])("%s", (_name, reply) => {
    expect(refusal(() => answerTo(reply))).toBe("INVALID_REPLY");
  });

  test.each([
    ["fewer decisions than requests", { decisions: [{ type: "approve" }] }],
    ["more decisions than requests", { decisions: [{ type: "approve" }, { type: "approve" }, { type: "approve" }] }],
    ["one word for two requests", "approve"],
    [
      "an id beside none",
      {
        decisions: [
          { type: "approve", id: "a1.1.0" },
          { type: "reject", message: "no" },
        ],
      },
    ],
    [
      "the same id twice",
      {
        decisions: [
          { type: "approve", id: "a1.1.0" },
          { type: "reject", id: "a1.1.0" },
        ],
      },
    ],
  ])("%s", (_name, reply) => {
    expect(refusal(() => readReplies(reply, [first, second]))).toBe("AMBIGUOUS_REPLY");
  });

  test("an id that is not shown never answers what is shown instead", () => {
    for (const reply of [{ type: "approve", id: "a9.0.0" }, { decisions: [{ type: "approve", id: "a9.0.0" }] }]) {
      expect(readReplies(reply, [first])).toEqual([{ id: "a9.0.0", answer: APPROVED }]);
    }
    expect(refusal(() => readReplies({ ["0".repeat(32)]: "approve" }, [first], "1".repeat(32)))).toBe("STALE_RESUME");
  });

  test.each([{ type: "ignore", args: null }, { type: "response", args: "no idea" }, "ignore", "perhaps"])(
    "%j does not say whether a call has happened, so it is not run again",
    (reply) => {
      expect(refusal(() => answerTo(reply, unknown))).toBe("INVALID_REPLY");
    },
  );

  // Whatever counts as an approval, written down a second time and without a look at how it is read.
  const WORDS = new Set(["approve", "approved", "accept", "yes", "y", "ok"]);
  const isWord = (value: unknown) => typeof value === "string" && WORDS.has(value.trim().toLowerCase());
  const isClear = (value: unknown): boolean =>
    value === true ||
    isWord(value) ||
    (typeof value === "object" &&
      value !== null &&
      "type" in value &&
      isWord(value.type) &&
      !("edited_action" in value));
  const unwrap = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.length === 1 ? unwrap(value[0]) : null;
    if (typeof value !== "object" || value === null) return value;
    if ("decisions" in value && Array.isArray(value.decisions)) return unwrap(value.decisions);
    const [key, ...others] = Object.keys(value);
    const names = key !== undefined && others.length === 0 && (key === first.id || /^[0-9a-f]{32}$/.test(key));
    return names ? unwrap(Object.values(value)[0]) : value;
  };

  test("whatever a client sends, only a clear approval approves", () => {
    const word = fc.oneof(
      fc.constantFrom(
        "approve",
        "Approve!",
        "yes",
        "yes?",
        "not ok",
        "ok then",
        "accept all",
        "edit",
        "reject",
        "no",
        "",
      ),
      fc.string(),
    );
    const type = fc.oneof(word, fc.constantFrom<unknown>(true, 1, null, ["approve"], { type: "approve" }));
    const item = fc.oneof(
      word,
      fc.boolean(),
      fc.jsonValue({ maxDepth: 2 }),
      fc.record(
        {
          type,
          message: word,
          args: fc.oneof(word, fc.constant({ order: "77", amount: 5000 }), fc.jsonValue({ maxDepth: 1 })),
          approve: fc.boolean(),
          edited_action: fc.constant({ name: "pay", args: { order: "77", amount: 5000 } }),
          id: fc.constantFrom("a1.0.0", "a1.1.0", "a9.9.9"),
        },
        { requiredKeys: [] },
      ),
    );
    const reply = fc.oneof(
      item,
      fc.array(item, { maxLength: 3 }),
      fc.record({ decisions: fc.array(item, { maxLength: 3 }) }),
      item.map((value) => ({ [first.id]: value })),
      item.map((value) => ({ ["0".repeat(32)]: value })),
    );
    fc.assert(
      fc.property(reply, (value) => {
        let approves = false;
        try {
          const replies = readReplies(value, [first]);
          approves = replies.some(({ id, answer }) => id === first.id && answer.type === "approve");
        } catch {
          return;
        }
        if (approves) expect(isClear(unwrap(value))).toBe(true);
      }),
      { numRuns: 5000 },
    );
  });
});
