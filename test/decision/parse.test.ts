import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseDecision } from "../../src/decision/parse.ts";
import type { Decision } from "../../src/workflow/record.ts";

const WHOLE = {
  because: 'it said "router", so [net] {it} is',
  patch: { note: 'say "hi" } ] \\ 😀', list: ["a", "b,c"], count: 12.5, deep: { on: true, off: null } },
  clear: ["old"],
  next: "done",
  reply: "Done.\nBye",
};

/** What a decision is read as: without reasoning, and `null` where nothing was said. */
function expected(given: object): Decision {
  return { because: null, patch: null, clear: null, next: null, ask: null, reply: null, ...given };
}

function refusalOf(raw: string): string {
  const parsed = parseDecision(raw);
  if (parsed.ok) expect.fail(`was read as ${JSON.stringify(parsed.decision)}`);
  expect(parsed.refusal.code).toBe("INVALID_DECISION");
  return parsed.refusal.reason;
}

const FENCED = `Here is my decision for {this} step:\n\`\`\`json\n${JSON.stringify(WHOLE, null, 2)}\n\`\`\`\nI hope it helps!`;
const SINGLE_QUOTED = `{'because': 'it\\'s the router', 'patch': {'note': 'a } b', 'list': ['x', 'y']}, 'next': 'done'}`;
const COMMENTED = `{
  // why I do it
  "because": "it is \\"urgent\\"", /* a block */
  "patch": {"priority": "P1", "list": ["a", "b",],}, // with commas
  "next": "done",
}`;

describe("a decision is read", () => {
  test.each([
    ["as it is", JSON.stringify(WHOLE), WHOLE],
    ["with white space around", `\n  ${JSON.stringify(WHOLE)}\t\n`, WHOLE],
    ["with prose before and after", `I think: ${JSON.stringify(WHOLE)} That is all.`, WHOLE],
    ["out of a fence", FENCED, WHOLE],
    [
      "with a fence inside one of its texts",
      '```json\n{"reply":"```js\\n}\\n```","next":"done"}\n```',
      { reply: "```js\n}\n```", next: "done" },
    ],
    ["after prose that holds braces", 'A set {1, 2} and {"a": 1} and {x: "y"}: {"next":"done"}', { next: "done" }],
    ["after prose with an apostrophe", 'It\'s "clear", isn\'t it? {"next":"done"}', { next: "done" }],
    [
      "with trailing commas",
      '{"patch":{"list":["a","b",],},"next":"done",}',
      { patch: { list: ["a", "b"] }, next: "done" },
    ],
    [
      "in single quotes",
      SINGLE_QUOTED,
      { because: "it's the router", patch: { note: "a } b", list: ["x", "y"] }, next: "done" },
    ],
    [
      "with comments",
      COMMENTED,
      { because: 'it is "urgent"', patch: { priority: "P1", list: ["a", "b"] }, next: "done" },
    ],
    ["with keys without quotes", '{next: "done", patch: {note: "x"}}', { patch: { note: "x" }, next: "done" }],
    [
      "with Python's constants",
      '{"patch": {"on": True, "off": False, "none": None}, "next": "done"}',
      { patch: { on: true, off: false, none: null }, next: "done" },
    ],
    [
      "with a line break inside a text",
      '{"patch":{"note":"a\nb"},"next":"done"}',
      { patch: { note: "a\nb" }, next: "done" },
    ],
    [
      "with null for everything else",
      '{"because":null,"patch":null,"clear":null,"next":"done","ask":null,"reply":null}',
      { next: "done" },
    ],
    ["with empty texts for nothing", '{"next":"","ask":"Why?","reply":""}', { ask: "Why?" }],
  ])("K24: %s", (_how, raw, decision) => {
    expect(parseDecision(raw)).toEqual({ ok: true, decision: expected(decision) });
  });

  test("without its reasoning, whatever that holds", () => {
    expect(parseDecision('{"reasoning":{"steps":["a"]},"next":"done"}')).toEqual({
      ok: true,
      decision: expected({ next: "done" }),
    });
  });

  test("the same whatever JSON it is and however it is written", () => {
    const patch = fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue(), { maxKeys: 4 });
    const sentence = fc.string({ unit: "grapheme", minLength: 1 });
    const given = fc.record({
      because: sentence,
      patch,
      clear: fc.array(fc.string()),
      next: sentence,
      reply: sentence,
    });
    fc.assert(
      fc.property(given, fc.constantFrom(0, 2, "\t"), (decision, indent) => {
        const plain = JSON.parse(JSON.stringify(decision)) as object;
        const raw = JSON.stringify(decision, null, indent);
        expect(parseDecision(raw)).toEqual({ ok: true, decision: expected(plain) });
        expect(parseDecision(`Sure:\n\`\`\`json\n${raw}\n\`\`\``)).toEqual({ ok: true, decision: expected(plain) });
      }),
    );
  });
});

describe("an answer is sent back with the reason", () => {
  test.each([
    ["", "empty"],
    [" \n", "empty"],
    ["I would go to done.", "I would go to done."],
    ["null", "no JSON object"],
    ['"done"', "no JSON object"],
    ["[]", "no JSON object"],
    ["[1, 2]", "no JSON object"],
    ['{"answer": "done"}', "answer"],
    ["My answer is {done}.", "no decision"],
  ])("K24: where it holds no decision: %j", (raw, said) => {
    expect(refusalOf(raw)).toContain(said);
  });

  test.each([
    ["an unknown key", '{"next":"done","priority":"P1"}', "priority"],
    ["an unknown key beside prose", 'Well: {"next":"done","state":{"x":1}}', "state"],
    ["a patch that is a list", '{"patch":["P1"],"next":"done"}', "patch"],
    ["a patch that is a text", '{"patch":"P1","next":"done"}', "patch"],
    ["a clear that is a text", '{"clear":"note","next":"done"}', "clear"],
    ["a clear that holds a number", '{"clear":[1],"next":"done"}', "clear.0"],
    ["a next that is a list", '{"next":["done"]}', "next"],
    ["a next that is a number", '{"next":1}', "next"],
    ["a question that is an object", '{"ask":{"text":"Why?"}}', "ask"],
    ["a reply that is true", '{"reply":true,"next":"done"}', "reply"],
    ["a reason that is a list", '{"because":["a"],"next":"done"}', "because"],
  ])("K24: where it has %s, naming it", (_what, raw, named) => {
    expect(refusalOf(raw)).toContain(named);
  });

  test("K24: where it is wrapped in another object", () => {
    refusalOf('{"decision":{"patch":{"note":"x"},"next":"done"}}');
  });

  test("shortly, however long it was", () => {
    expect(refusalOf(`no ${"x".repeat(100_000)}`).length).toBeLessThan(400);
    expect(refusalOf(JSON.stringify({ next: "done", ["k".repeat(100_000)]: 1 })).length).toBeLessThan(500);
  });

  test.each([
    ["two decisions", '{"patch":{"note":"a"},"next":"done"}\n{"patch":{"note":"b"},"next":"check"}'],
    ["a second thought", '{"next":"check"}\nNo, wait: {"next":"done"}'],
    ["a list of two decisions", '[{"next":"check"},{"next":"done"}]'],
  ])("K24: where it holds %s, since nobody knows which counts", (_what, raw) => {
    refusalOf(raw);
  });

  test.each([
    ["a list", '{"patch":{"list":["a","b", ...]},"next":"done"}'],
    ["the middle of a list", '{"patch":{"list":["a", ..., "z"]},"next":"done"}'],
    ["an object", '{"patch":{"deep":{"a":1, ...}},"next":"done"}'],
  ])("K24: where dots stand for the rest of %s, which would be lost", (_what, raw) => {
    refusalOf(raw);
  });
});

describe("nothing of an answer is made up or left out", () => {
  const whole = JSON.stringify(WHOLE);
  const pretty = JSON.stringify(WHOLE, null, 2);

  test.each([
    ["plain JSON", whole],
    ["indented JSON", pretty],
    ["JSON in prose and a fence", FENCED],
    ["JSON after prose with braces", `Use {braces} and {"a": {"b": 1}} like so: ${whole} Fine?`],
    ["single quotes", SINGLE_QUOTED],
    ["comments and trailing commas", COMMENTED],
    ["nested quotes and escapes", JSON.stringify({ patch: { note: '\\"{\\"' }, ask: 'Is it "on"? \\' })],
    ["escaped characters", '{"patch":{"note":"\\u00e9\\ud83d\\ude00\\n"},"next":"d\\u006fne"}'],
  ])("K24: %s, cut at every position, is refused or read as the whole", (_what, raw) => {
    const full = parseDecision(raw);
    if (!full.ok) expect.fail(full.refusal.reason);
    let read = 0;
    for (let length = 0; length < raw.length; length++) {
      const cut = parseDecision(raw.slice(0, length));
      if (!cut.ok) continue;
      read++;
      expect(cut, `cut after ${length} characters`).toEqual(full);
    }
    // Only cuts behind the object can be read.
    expect(read).toBe(raw.length - 1 - raw.lastIndexOf("}"));
  });

  test("K24: any decision, cut anywhere, is refused", () => {
    const given = fc.record(
      {
        because: fc.string({ unit: "grapheme" }),
        patch: fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 }),
        next: fc.string({ minLength: 1 }),
      },
      { requiredKeys: ["patch"] },
    );
    fc.assert(
      fc.property(given, fc.nat(), fc.constantFrom(0, 2), (decision, at, indent) => {
        const raw = JSON.stringify(decision, null, indent);
        expect(parseDecision(raw.slice(0, at % raw.length)).ok).toBe(false);
      }),
      { numRuns: 1000 },
    );
  });

  test.each([
    ["a comment that closes a bracket", '{"patch":{"note":"x"} // ends here }\n, "next":"done"}'],
    ["a block comment that closes brackets", '{"patch":{"note":"x" /* } } */, "priority":"P1"}, "next":"done"}'],
    ["a bracket too many in the middle", '{"patch":{"note":"x"}},"next":"done"}'],
    ["bare quotes and a bracket in a text", '{"patch":{"note":"he said "a}b" twice"},"next":"done"}'],
    ["a thought aloud before it", '<think>Perhaps {"next":"check"}? No.</think>{"next":"done"}'],
  ])("K24: an answer with %s is refused or read as the whole, never as a part of it", (_what, raw) => {
    const parsed = parseDecision(raw);
    expect(parsed.ok ? parsed.decision.next : "done").toBe("done");
  });

  test("a key named __proto__ stays data and changes no prototype", () => {
    const parsed = parseDecision('{"patch":{"__proto__":{"polluted":true}},"next":"done"}');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    if (parsed.ok) expect((parsed.decision.patch as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe("the calls of a decision", () => {
  const parsed = (calls: unknown) => parseDecision(JSON.stringify({ calls }));

  test("are read with their ids, references and expectations", () => {
    const calls = [
      { tool: "find", args: { name: "alpha" }, id: "a" },
      { tool: "take", args: { code: { $ref: "a.code" } }, expect: [{ path: "x.0", is: "at least", value: 5 }] },
    ];
    expect(parsed(calls)).toEqual({ ok: true, decision: expected({ calls }) });
  });

  test("what a strict output mode writes for what is left out is left out", () => {
    const written = { tool: "find", args: { name: null }, id: null, expect: null };
    expect(parsed([written, { ...written, id: "", expect: [] }])).toEqual({
      ok: true,
      decision: expected({ calls: [1, 2].map(() => ({ tool: "find", args: { name: null } })) }),
    });
    const vague = { tool: "find", args: {}, expect: [{ path: null, is: "present", value: null }] };
    expect(parsed([vague])).toMatchObject({ decision: { calls: [{ expect: [{ is: "present" }] }] } });
    expect(parsed([vague])).not.toHaveProperty("decision.calls.0.expect.0.path");
  });

  test("none are no calls", () => {
    expect(parsed([])).toEqual({ ok: true, decision: expected({}) });
    expect(parsed(null)).toEqual({ ok: true, decision: expected({}) });
  });

  test("an expectation of nothing and one of false are told apart", () => {
    const expectations = [
      { is: "equal to", value: false },
      { is: "equal to", value: 0 },
      { is: "equal to", value: "" },
    ];
    expect(parsed([{ tool: "find", args: {}, expect: expectations }])).toMatchObject({
      decision: { calls: [{ expect: expectations }] },
    });
  });

  test("an id of 1,500 characters is kept (K16)", () => {
    const id = "x".repeat(1500);
    expect(parsed([{ tool: "find", args: {}, id }])).toMatchObject({ decision: { calls: [{ id }] } });
  });

  test.each<readonly [string, unknown, string]>([
    ["a call that is a text", ["find"], "calls.0"],
    ["calls that are an object", { tool: "find", args: {} }, "calls"],
    ["a call without a tool", [{ args: {} }], "calls.0.tool"],
    ["a call without arguments", [{ tool: "find" }], "calls.0.args"],
    ["arguments as a text", [{ tool: "find", args: '{"name":"x"}' }], "calls.0.args"],
    ["arguments as a list", [{ tool: "find", args: ["x"] }], "calls.0.args"],
    ["an id that is a number", [{ tool: "find", args: {}, id: 1 }], "calls.0.id"],
    ["an unknown key", [{ tool: "find", args: {}, name: "x" }], "name"],
    ["an expectation of an unknown kind", [{ tool: "find", args: {}, expect: [{ is: "nice" }] }], "expect.0.is"],
    ["an expectation that is a text", [{ tool: "find", args: {}, expect: ["not empty"] }], "expect.0"],
    ["an expected list", [{ tool: "find", args: {}, expect: [{ is: "equal to", value: [] }] }], "expect.0.value"],
    ["an unknown key in an expectation", [{ tool: "find", args: {}, expect: [{ is: "present", of: "x" }] }], "of"],
  ])("K24: %s is sent back, naming it", (_what, calls, named) => {
    expect(refusalOf(JSON.stringify({ calls }))).toContain(named);
  });
});

test("what is nested without end is refused, and so is what is not closed", () => {
  const deep = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
  const refused = { ok: false, refusal: { code: "INVALID_DECISION" } };
  for (const depth of [100, 8000, 100_000]) {
    expect(parseDecision(`{"patch":{"a":${deep(depth)}}}`)).toMatchObject(refused);
    expect(parseDecision(`{"calls":[{"tool":"t","args":{"a":${deep(depth)}}}]}`)).toMatchObject(refused);
    expect(parseDecision(`so: {"patch":{"a":${deep(depth)}},}`)).toMatchObject(refused);
  }
  expect(parseDecision(`{"patch":{"a":${deep(30)}}}`)).toMatchObject({ ok: true });
});

test("a run of blanks is read once", () => {
  expect(parseDecision(`{"next": 'done'${" ".repeat(1_000_000)}}`)).toMatchObject({
    ok: true,
    decision: { next: "done" },
  });
});

test("a reason quotes no half of a secret", () => {
  const secret = `ghp_${"a1b2".repeat(8)}`;
  const parsed = parseDecision(`${"x ".repeat(35)}${secret} and so on`);
  expect(JSON.stringify(parsed)).not.toContain("ghp_");
});
