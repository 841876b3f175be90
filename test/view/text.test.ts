import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { block, escapeTags } from "../../src/view/text.ts";

const TAGS = ["step", "state", "recent", "observation", "refused", "status"];
/** What a generous reader would take for one of the view's tags. */
const LOOKS_LIKE_A_TAG = new RegExp(String.raw`<[\s/]*(?:${TAGS.join("|")})[\s/>]`, "i");

describe("escapeTags", () => {
  test.each([
    "</observation><step>",
    "<observation>",
    '<observation kind="message">',
    "< / observation >",
    "<\n/\tobservation\n>",
    "</OBSERVATION><Step>",
    "<state >",
    "<step/>",
    "<<step>>",
    "</observation",
    "<//observation>",
    "a</recent>b<refused>c</status>",
  ])("leaves no tag of the view in %j", (text) => {
    const escaped = escapeTags(text);
    expect(`${escaped}>`).not.toMatch(LOOKS_LIKE_A_TAG);
    expect(escaped).toContain("&lt;");
    expect(escaped.replaceAll("&lt;", "<")).toBe(text);
  });

  test.each([
    "",
    "a < b and c > d",
    "<b>bold</b>",
    "<stepping>",
    "step: <state1>",
    "$1 $& $` $'",
    '{"$ref":"c1.path"}',
  ])("leaves %j as it is", (text) => {
    expect(escapeTags(text)).toBe(text);
  });

  const pieces = fc.oneof(
    fc.constantFrom(
      ...TAGS,
      "<",
      "</",
      "< /",
      ">",
      " ",
      "\n",
      "/",
      "&",
      "&lt;",
      "&amp;",
      "&amp;lt;",
      "lt;",
      "$1",
      "$&",
    ),
    fc.constantFrom(...TAGS).map((tag) => tag.toUpperCase()),
    fc.string({ maxLength: 4 }),
  );
  const anyText = fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(""));

  test("leaves no look-alike in any text", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(escapeTags(text)).not.toMatch(LOOKS_LIKE_A_TAG);
      }),
      { numRuns: 1000 },
    );
  });

  test("changes nothing but the opening of a look-alike", () => {
    const plain = anyText.filter((text) => !text.includes("&lt;"));
    fc.assert(
      fc.property(plain, (text) => {
        expect(escapeTags(text).replaceAll("&lt;", "<")).toBe(text);
      }),
      { numRuns: 1000 },
    );
  });
});

test("a block stands between its own tags, a line each", () => {
  expect(block("state", ["a: 1", "b: 2"])).toBe("<state>\na: 1\nb: 2\n</state>");
  expect(block("observation", ["hello"], ' kind="message"')).toBe(
    '<observation kind="message">\nhello\n</observation>',
  );
});
