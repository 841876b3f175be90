import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseDecision } from "../../src/decision/parse.ts";
import { ReplyScanner } from "../../src/decision/reply-scanner.ts";

function scan(pieces: readonly string[]): string {
  const scanner = new ReplyScanner();
  return pieces.map((piece) => scanner.push(piece)).join("");
}

/** Cuts a text in UTF-16 units, so that surrogate pairs and escapes are cut too. */
function cut(whole: string, sizes: readonly number[]): readonly string[] {
  const pieces: string[] = [];
  let at = 0;
  for (const size of sizes) {
    pieces.push(whole.slice(at, at + size));
    at += size;
  }
  return [...pieces, whole.slice(at)];
}

/** Writes some characters as \u escapes, which JSON allows for any. */
function escapeSome(json: string, every: number): string {
  let index = 0;
  return json.replaceAll(/\P{ASCII}|[a-z]/gu, (character) => {
    if (index++ % every !== 0) return character;
    return [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`)
      .join("");
  });
}

const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: fc.constantFrom('"', "\\", "\n", "\t", "{", "}", "[", ",", ":", "/", "é", "😀", "𝒳", "网") }),
);
const decision = fc.record(
  {
    because: text,
    patch: fc.dictionary(fc.oneof(fc.constant("reply"), text), fc.oneof(text, fc.jsonValue()), { maxKeys: 3 }),
    clear: fc.array(fc.oneof(fc.constant("reply"), text), { maxLength: 3 }),
    next: text,
    ask: fc.constant(null),
    reply: fc.oneof(text, fc.constant(null)),
  },
  { requiredKeys: [] },
);
const sizes = fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 80 });

describe("the text of a reply", () => {
  test("is read out of any decision, whatever pieces it comes in", () => {
    fc.assert(
      fc.property(decision, sizes, fc.constantFrom(0, 2), (given, pieces, indent) => {
        const json = JSON.stringify(given, null, indent);
        const { reply } = JSON.parse(json) as { reply?: string | null };
        expect(scan(cut(json, pieces))).toBe(reply ?? "");
      }),
      { numRuns: 1000 },
    );
  });

  test("is the same when its characters are written as escapes, cut anywhere", () => {
    fc.assert(
      fc.property(text, sizes, fc.integer({ min: 1, max: 3 }), (reply, pieces, every) => {
        const json = `{"next":"done","reply":${escapeSome(JSON.stringify(reply), every)}}`;
        fc.pre(isJson(json));
        expect(scan(cut(json, pieces))).toBe((JSON.parse(json) as { reply: string }).reply);
      }),
      { numRuns: 1000 },
    );
  });

  test("comes as it is written, not only at the end", () => {
    const scanner = new ReplyScanner();
    expect(scanner.push('{"next":"done","reply":"Hel')).toBe("Hel");
    expect(scanner.push("lo \\u00")).toBe("lo ");
    expect(scanner.push('e9"')).toBe("é");
    expect(scanner.push(',"because":"x"}')).toBe("");
  });

  test("of one character at a time adds up to the whole", () => {
    const json = JSON.stringify({ patch: { reply: "not this" }, reply: 'A 😀 "quote" \\ end\n', clear: ["reply"] });
    expect(scan(json.split(""))).toBe('A 😀 "quote" \\ end\n');
  });

  test.each([
    ["below the top level", '{"patch":{"reply":"no"},"next":"done"}'],
    ["that is no text", '{"reply":null,"because":"reply","next":"reply"}'],
    ["in a list", '{"clear":["reply","x"],"next":"done"}'],
    ["that stands in another text", '{"because":"\\"reply\\":\\"no\\"","next":"done"}'],
  ])("is empty for a reply %s", (_where, json) => {
    expect(scan([json])).toBe("");
  });

  test("with an escaped key is found", () => {
    expect(scan(['{"re\\u0070ly":"yes"}'])).toBe("yes");
  });

  test("is found in a fence and after prose", () => {
    expect(scan(['Here it is:\n```json\n{"reply":"Hi"}\n```'])).toBe("Hi");
  });

  test("after prose with braces is that of the object that is read as the decision", () => {
    const raw = 'A set {a: b} and so on: {"reply":"Hi","next":"done"}';
    const parsed = parseDecision(raw);
    if (!parsed.ok) expect.fail(parsed.refusal.reason);
    expect(scan([raw])).toBe(parsed.decision.reply);
  });

  test("never holds a piece of the JSON around it, even where a second object follows", () => {
    expect(scan(['{"reply":"one"} {"reply":"two"}'])).not.toContain("reply");
  });
});

function isJson(json: string): boolean {
  try {
    JSON.parse(json);
    return true;
  } catch {
    return false;
  }
}

test("no piece holds half a character", () => {
  const scanner = new ReplyScanner();
  const pieces = ['{"reply":"a\\ud83d', "\\ude00b\ud83d", '\ude00c"}'].map((piece) => scanner.push(piece));
  expect(pieces).toEqual(["a", "\ud83d\ude00b", "\ud83d\ude00c"]);
});
