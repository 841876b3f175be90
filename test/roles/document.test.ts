import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isWorkflowError, loadRole, parseRole, type RoleFault } from "statecard";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../support/cli.ts";

const WHOLE = `# The clerk

## Identity

You are a clerk.
Money is not your business.

## Working advice

Ask first.

### When in doubt

Ask twice.

## Output style

Short.

## Safety

Never promise.
`;
const ROLE = {
  identity: "You are a clerk.\nMoney is not your business.",
  advice: "Ask first.\n\n### When in doubt\n\nAsk twice.",
  style: "Short.",
  safety: "Never promise.",
};

/** The faults of a document, as `code:line`. */
function faultsOf(read: () => unknown): readonly string[] {
  try {
    read();
  } catch (error) {
    if (!isWorkflowError(error, "INVALID_ROLE")) throw error;
    return (error.details.faults as readonly RoleFault[]).map(({ code, line }) => `${code}:${line}`);
  }
  return [];
}

describe("a role document", () => {
  test("has four parts; deeper headings are text of theirs", () => {
    expect(parseRole(WHOLE, "clerk.md")).toEqual(ROLE);
    expect(Object.isFrozen(parseRole(WHOLE, "clerk.md"))).toBe(true);
  });

  test.each([
    ["a byte order mark", (text: string) => `\uFEFF${text}`],
    ["Windows line ends", (text: string) => text.replaceAll("\n", "\r\n")],
    [
      "another case",
      (text: string) => text.replace("## Identity", "## IDENTITY").replace("Working advice", "working ADVICE"),
    ],
    ["no title", (text: string) => text.replace("# The clerk\n", "")],
    ["higher headings", (text: string) => text.replace("# The clerk\n", "").replaceAll(/^## /gm, "# ")],
    ["closed headings", (text: string) => text.replaceAll(/^## (.*)$/gm, "## $1 ##")],
    ["bold headings with a colon", (text: string) => text.replaceAll(/^## (.*)$/gm, "## **$1:**")],
    ["short names", (text: string) => text.replace("Working advice", "Advice").replace("Output style", "Style")],
    ["Chinese names", (text: string) => text.replace("Identity", "身份").replace("Safety", "安全")],
    ["sections of different levels", (text: string) => text.replace("## Safety", "#### Safety")],
    [
      "another order",
      (text: string) => {
        const [title = "", ...sections] = text.split(/^(?=## )/m);
        return [title, ...sections.toReversed().map((section) => `${section}\n`)].join("");
      },
    ],
  ])("may have %s", (_what, change) => {
    expect(parseRole(change(WHOLE), "clerk.md")).toEqual(ROLE);
  });

  test("needs nothing but the identity", () => {
    expect(parseRole("# Identity\nA clerk.", "clerk.md")).toEqual({ identity: "A clerk." });
  });

  test("may show code in which a # begins no heading", () => {
    const text = "# Identity\n```sh\n# Safety\n```\nA clerk.";
    expect(parseRole(text, "clerk.md").identity).toBe("```sh\n# Safety\n```\nA clerk.");
  });

  test.each([
    ["nothing", "", ["EMPTY:1"]],
    ["nothing but space and a mark", "\uFEFF \r\n\t\n", ["EMPTY:1"]],
    ["no identity", "# Safety\nNever.", ["MISSING_IDENTITY:1"]],
    ["an unknown section", "# Identity\nA clerk.\n\n# Hobbies\nChess.\n# Safety\nNever.", ["UNKNOWN_SECTION:4"]],
    ["a section twice", "# Identity\nA clerk.\n# Safety\nA.\n# Safety\nB.", ["DUPLICATE_SECTION:5"]],
    ["one thing under two names", "# Identity\nA clerk.\n# Style\nA.\n## Output style\nB.", ["DUPLICATE_SECTION:5"]],
    ["an empty section", "# Identity\nA clerk.\n# Safety\n\n", ["EMPTY_SECTION:3"]],
    ["text that nobody would see", "Hello.\n# Identity\nA clerk.", ["TEXT_OUTSIDE:1"]],
    ["too much", `# Identity\n${"x".repeat(16_000)}`, ["TOO_LARGE:1"]],
    ["several faults", "Hello.\n# Hobbies\n# Safety\n", ["TEXT_OUTSIDE:1", "MISSING_IDENTITY:1", "EMPTY_SECTION:3"]],
  ])("with %s is refused, with the line", (_what, text, faults) => {
    expect(faultsOf(() => parseRole(text, "clerk.md"))).toEqual(faults);
  });

  test("says what is wrong, where, and what to do", () => {
    expect(() => parseRole("# Identity\nA clerk.\n# Hobbies\nChess.", "clerk.md")).toThrow(
      'the role clerk.md has 1 fault:\n  clerk.md:3: there is no section "Hobbies"; there are Identity, Working advice, Output style and Safety, and what belongs to one of them needs a deeper heading (UNKNOWN_SECTION)',
    );
  });
});

describe("a file", () => {
  test("is read by its path or URL", async () => {
    const file = join(await temporaryFolder(), "clerk.md");
    writeFileSync(file, WHOLE);
    expect(loadRole(file)).toEqual(ROLE);
    expect(loadRole(new URL("../../graphs/router/roles/router.md", import.meta.url)).identity).toContain("front desk");
    expect(readFileSync(file, "utf8")).toBe(WHOLE);
  });

  test("that is not there, is a folder, too large or no text is INVALID_ROLE with its name", async () => {
    const folder = await temporaryFolder();
    const file = join(folder, "clerk.md");
    const message = (path: string) => {
      try {
        return loadRole(path) && "no error";
      } catch (error) {
        return isWorkflowError(error, "INVALID_ROLE") ? error.message : "another error";
      }
    };
    expect(message(file)).toContain(`the role ${file} cannot be read: ENOENT`);
    expect(message(folder)).toContain(`the role ${folder} cannot be read: EISDIR`);
    writeFileSync(file, Buffer.alloc(64_001, "x"));
    expect(message(file)).toContain("TOO_LARGE");
    writeFileSync(file, Buffer.from([0x23, 0xff, 0xfe]));
    expect(message(file)).toContain(`${file}:1: it is no UTF-8 text (NOT_TEXT)`);
    writeFileSync(file, "# Identity\n\0");
    expect(message(file)).toContain("NOT_TEXT");
  });
});
