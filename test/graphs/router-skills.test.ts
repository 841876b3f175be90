import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Shown } from "../../graphs/router/code-agent/project.ts";
import { execute as readFile } from "../../graphs/router/code-agent/skills/read-file/skill.ts";
import { execute as searchCode } from "../../graphs/router/code-agent/skills/search-code/skill.ts";
import { keepShown } from "../../graphs/router/code-agent/tools.ts";
import { temporaryFolder } from "../support/cli.ts";

const BUNDLED = { clients: {} };

async function projectWith(files: Readonly<Record<string, string>>) {
  const codeFolder = await temporaryFolder();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(codeFolder, path, ".."), { recursive: true });
    writeFileSync(join(codeFolder, path), text);
  }
  return { clients: { codeFolder } };
}

const placesIn = ({ output }: { readonly output: object }) =>
  "lines" in output ? (output.lines as Shown["lines"]).map(({ place }) => place) : [];

describe("search-code", () => {
  test("gives places and lines, whatever the case", () => {
    const found = { found: 2, lines: [{ place: "include/uart.h:9" }, { place: "src/uart.c:13" }] };
    for (const text of ["UART_FIFO_THRESHOLD", "uart_fifo_threshold", "  Fifo_Threshold "]) {
      expect(searchCode({ text }, BUNDLED)).toMatchObject({ status: "success", output: found });
    }
  });

  test("gives twenty places and says how many there are", async () => {
    const project = await projectWith({ "a.c": "x_y\n".repeat(50) });
    const result = searchCode({ text: "x_y" }, project);
    expect(result.output).toMatchObject({ found: 50 });
    expect(placesIn(result)).toHaveLength(20);
  });

  test("wants two characters at least, and finds nothing without a fault", () => {
    expect(searchCode({ text: " x " }, BUNDLED)).toMatchObject({ status: "failure", output: { type: "TOO_SHORT" } });
    expect(searchCode({ text: "blockchain" }, BUNDLED)).toMatchObject({ output: { found: 0, lines: [] } });
  });

  test("looks at no links, hidden or installed files", async () => {
    const outside = await projectWith({ "secret.c": "secret" });
    const project = await projectWith({
      "src/a.c": "secret",
      ".git/b.c": "secret",
      "node_modules/p/c.js": "secret",
      "data.bin": "secret",
    });
    symlinkSync(outside.clients.codeFolder, join(project.clients.codeFolder, "linked"));
    symlinkSync(join(outside.clients.codeFolder, "secret.c"), join(project.clients.codeFolder, "d.c"));
    expect(placesIn(searchCode({ text: "secret" }, project))).toEqual(["src/a.c:1"]);
  });
});

describe("read-file", () => {
  test("gives forty lines from one on, with their numbers", async () => {
    const project = await projectWith({
      "a.c": Array.from({ length: 100 }, (_, index) => `line ${index + 1}`).join("\n"),
    });
    const result = readFile({ path: "a.c", from: 31 }, project);
    expect(result).toMatchObject({ output: { found: 40 }, metadata: { lines: 100 } });
    expect(placesIn(result).at(-1)).toBe("a.c:70");
    expect(readFile({ path: "a.c", from: 500 }, project)).toMatchObject({ status: "success", output: { found: 0 } });
  });

  test.each(["../uart.log", "/etc/passwd", "src/../src/uart.c", "src", "src/none.c", "src\\uart.c", ""])(
    "reads no %j, and says what there is",
    (path) => {
      const advice = expect.stringContaining("src/uart.c");
      expect(readFile({ path, from: 1 }, BUNDLED)).toMatchObject({
        status: "failure",
        output: { type: "NOT_FOUND", advice },
      });
    },
  );
});

test("what was shown is kept by code: each line once, the newest sixty", () => {
  const result = (lines: readonly { place: string; text: string }[]) =>
    ({
      id: "1.0",
      tool: "read-file",
      status: "ok",
      value: { output: { asked: "read a.c", found: 2, lines } },
    }) as never;
  const many = Array.from({ length: 59 }, (_, index) => `a.c:${index + 1} x`);
  const kept = keepShown(
    result([
      { place: "a.c:1", text: "x" },
      { place: "b.c:1", text: "y" },
      { place: "b.c:2", text: "z" },
    ]),
    {
      lines: many,
      asked: ["read a.c: 2 found"],
    },
  );
  expect(kept.lines).toHaveLength(60);
  expect(kept.lines?.slice(-3)).toEqual(["a.c:1 x", "b.c:1 y", "b.c:2 z"]);
  expect(kept.asked).toEqual(["read a.c: 2 found"]);
  expect(keepShown({ status: "error" } as never, { lines: many, asked: null })).toEqual({});
});
