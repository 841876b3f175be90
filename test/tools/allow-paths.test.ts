import fc from "fast-check";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { allowPaths } from "../../src/tools/interceptors.ts";

const context = { tool: "read", taskId: "t", step: "work", state: {} };
const top = realpathSync(mkdtempSync(join(tmpdir(), "paths-")));
const inside = join(top, "inside");
const second = join(top, "second");
const outside = join(top, "outside");
for (const folder of [join(inside, "sub/deep"), second, join(outside, "deep"), `${inside}-not`]) {
  mkdirSync(folder, { recursive: true });
}
writeFileSync(join(inside, "a.txt"), "a");
writeFileSync(join(outside, "secret.txt"), "s");
symlinkSync(outside, join(inside, "to-outside"));
symlinkSync(join(outside, "deep"), join(inside, "to-deep"));
symlinkSync(join(outside, "new.txt"), join(inside, "dangling"));
symlinkSync("sub/deep", join(inside, "to-sub"));
symlinkSync("../second", join(inside, "to-second"));
symlinkSync("circle", join(inside, "circle"));
symlinkSync(inside, join(top, "front"));
afterAll(() => rmSync(top, { recursive: true }));

const check = allowPaths([inside, second]);
const judge = (path: unknown) => check({ path }, context)?.refuse ?? null;

describe("allowPaths", () => {
  test.each([
    ".",
    "",
    "a.txt",
    "./a.txt",
    "sub/../a.txt",
    "sub/new/file.txt",
    "to-sub/x.txt",
    "to-sub/../x.txt",
    "to-second/x.txt",
    "..a",
    "...",
    "a.txt/below",
    "what: ever",
    join(inside, "a.txt"),
    inside,
    second,
    join(second, "x/y"),
    join(top, "front/a.txt"),
    "../second/x",
    "%2e%2e/x",
  ])("takes %j", (path) => expect(judge(path)).toBeNull());

  test.each([
    "..",
    "../outside/secret.txt",
    "sub/../../outside",
    "sub/../../../../../../../etc/passwd",
    "/etc/passwd",
    "/",
    outside,
    top,
    `${inside}-not`,
    `${inside}/../outside`,
    "to-outside",
    "to-outside/secret.txt",
    "to-outside/new/file",
    "to-deep/../secret.txt",
    "dangling",
    "./sub/../to-outside/deep",
    "~",
    "~/x",
    "~root/x",
    "a.txt\0.png",
    "\0",
    "file:///etc/passwd",
    "FILE:/etc/passwd",
    " file:///etc/passwd",
    `file://${inside}/a.txt`,
    "https://x.example/a.txt",
    "..\\outside\\secret.txt",
    "sub\\..\\..\\outside",
  ])("refuses %j", (path) => {
    expect(judge(path)).toContain("is no plain path inside the allowed folders");
    expect(judge(path)).toContain(`${inside}, ${second}`);
  });

  test("a circle of links is refused, whatever it is", () => {
    expect(() => judge("circle")).toThrow();
  });

  test("lists of paths and other arguments are looked at where they are named", () => {
    const both = allowPaths([inside], { arguments: ["from", "to"] });
    expect(both({ from: "a.txt", to: ["b.txt", "sub/c.txt"] }, context)).toBeNull();
    expect(both({ from: "a.txt", to: ["b.txt", "../c.txt"] }, context)?.refuse).toContain('to "../c.txt"');
    expect(both({ path: "/etc" }, context)).toBeNull();
    expect(both({ from: null }, context)).toBeNull();
    expect(both({ from: 7 }, context)?.refuse).toBe("from is neither a path nor a list of paths");
    expect(both({ from: ["a", 7] }, context)?.refuse).toBe("from is neither a path nor a list of paths");
  });

  test("no folder at all is a mistake", () => {
    expect(() => allowPaths([])).toThrow(/at least one folder/);
    expect(() => allowPaths([""])).toThrow(/none of them empty/);
  });

  test("an allowed folder may itself be a link, or not exist yet", () => {
    expect(allowPaths([join(top, "front")])({ path: "a.txt" }, context)).toBeNull();
    expect(allowPaths([join(top, "later")])({ path: "a.txt" }, context)).toBeNull();
    expect(allowPaths([join(top, "later")])({ path: "../inside/a.txt" }, context)).not.toBeNull();
  });

  test("what gets through stays inside, tidied up or not, with its links resolved", () => {
    const part = fc.constantFrom(
      "..",
      ".",
      "",
      "sub",
      "deep",
      "a.txt",
      "new",
      "to-outside",
      "to-deep",
      "to-sub",
      "to-second",
      "dangling",
      "inside",
      "second",
      "outside",
      "secret.txt",
      "~",
      "...",
    );
    const path = fc
      .tuple(fc.constantFrom("", "/", `${inside}/`, `${second}/`, `${top}/`), fc.array(part, { maxLength: 7 }))
      .map(([start, parts]) => start + parts.join("/"));
    let through = 0;
    fc.assert(
      fc.property(path, (given) => {
        if (judge(given) !== null) return;
        through += 1;
        const raw = given.startsWith("/") ? given : `${inside}/${given}`;
        for (const reading of [resolve(raw), raw]) {
          const real = nearest(reading);
          if (real !== null) expect([inside, second].some((root) => !relative(root, real).startsWith(".."))).toBe(true);
        }
        // Said by the text alone.
        expect(
          [inside, second, join(top, "front")].some((root) => !relative(root, resolve(raw)).startsWith("../")),
        ).toBe(true);
      }),
      { numRuns: 3000 },
    );
    expect(through).toBeGreaterThan(100);
  });
});

/** The real place of a path, or of what exists above it, as the system sees it; null where nothing can be said. */
function nearest(path: string): string | null {
  try {
    return realpathSync.native(path);
  } catch {
    const above = dirname(path);
    // Above "new/.." is not what the system would open.
    return path.split("/").includes("..") || above === path ? null : nearest(above);
  }
}
