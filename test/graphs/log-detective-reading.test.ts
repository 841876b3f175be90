import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  renameSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { searchApart } from "../../bench/detective-stream.ts";
import { readLines } from "../../graphs/log-detective/skills/read-log-file/lines.ts";
import { openLog } from "../../graphs/log-detective/skills/read-log-file/open-log.ts";
import { execute } from "../../graphs/log-detective/skills/read-log-file/skill.ts";
import { momentOf, readStamp, tellMoment } from "../../graphs/log-detective/skills/read-log-file/stamps.ts";
import { levelOf, traitOf } from "../../graphs/log-detective/skills/read-log-file/traits.ts";
import { temporaryFolder } from "../support/cli.ts";

const { signal } = new AbortController();
let folder = "";
beforeEach(async () => {
  folder = await temporaryFolder();
});

function place(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

async function read(file: string, asked: object = {}, state: object = {}) {
  return execute({ file, ...asked }, { signal, clients: { logFolders: [folder] }, state: { ...state } });
}

async function scan(file: string, asked: object = {}) {
  const result = await read(file, asked);
  if (result.status === "failure") throw new Error(result.output.error);
  return result.output;
}

async function* chunked(bytes: Buffer, sizes: readonly number[]) {
  let at = 0;
  for (let index = 0; at < bytes.length; index++) {
    const size = sizes[index % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function linesOf(bytes: Buffer, sizes: readonly number[], maxBytes?: number) {
  const all = [];
  for await (const lines of readLines(chunked(bytes, sizes), maxBytes)) all.push(...lines);
  return all;
}

describe("lines", () => {
  test("are the same whatever the chunks are, with every character whole", async () => {
    const line = fc
      .string({ unit: "binary", maxLength: 30 })
      .map((text) => text.replaceAll(/[\n\r\ufeff\ufffd]/g, "x"));
    const log = fc.record({
      lines: fc.array(line, { maxLength: 20 }),
      end: fc.constantFrom("\n", "\r\n"),
      isEnded: fc.boolean(),
    });
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(log, sizes, async ({ lines, end, isEnded }, sizes) => {
        const text = lines.join(end) + (isEnded && lines.length > 0 ? end : "");
        const got = await linesOf(Buffer.from(text), sizes);
        const expected = text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/);
        expect(got.map((one) => one.text)).toEqual(expected.map((one) => Buffer.from(one).toString()));
        expect(got.map((one) => one.number)).toEqual(expected.map((_, index) => index + 1));
      }),
      { numRuns: 300 },
    );
  });

  test("that are very long are cut between characters, and what is missing is counted", async () => {
    const text = "é".repeat(50);
    for (const size of [1, 7, 64, 1000]) {
      const [first, second] = await linesOf(Buffer.from(`${text}\nnext`), [size], 33);
      expect(first).toEqual({ number: 1, text: "é".repeat(16), cutBytes: 68 });
      expect(second).toEqual({ number: 2, text: "next", cutBytes: 0 });
    }
  });

  test("of more than 64 KB are shown with a mark, and the lines after them have their right numbers", async () => {
    place("long.log", `ERROR ${"x".repeat(300_000)}\nERROR short\n`);
    const { shown, notes, lines } = await scan("long.log", { level: "error" });
    expect(lines).toBe(2);
    expect(shown[0]?.text).toMatch(/^ERROR x{174}… \[long line, cut\]$/);
    expect(shown[1]).toEqual({ line: "L2", text: "ERROR short" });
    expect(notes.join()).toContain("1 lines are longer than 65,536 bytes");
  });

  test("with bytes that are no UTF-8 are read all the same, and it is said", async () => {
    place(
      "latin.log",
      Buffer.concat([Buffer.from("ERROR caf"), Buffer.from([0xe9]), Buffer.from(" closed\nINFO ok\n")]),
    );
    const { shown, notes } = await scan("latin.log", { keywords: ["closed"] });
    expect(shown).toEqual([{ line: "L1", text: "ERROR caf\ufffd closed" }]);
    expect(notes).toContain("1 lines have bytes that are no UTF-8");
  });

  test("begin without the mark of UTF-8", async () => {
    place("mark.log", "\ufeff2026-03-01T10:00:00Z INFO up\n");
    expect(await scan("mark.log")).toMatchObject({ format: "ISO", begins: "2026-03-01T10:00:00" });
  });
});

test("200 MB are searched in a process that could not hold them", { timeout: 600_000 }, () => {
  const path = join(folder, "big.log");
  const lines = Array.from(
    { length: 20_000 },
    (_, index) => `2026-03-01T10:00:00Z INFO app: request ${index} was served\n`,
  );
  const block = lines.join("");
  const small = place("small.log", `${block}ERROR the Needle\n`);
  const file = openSync(path, "w");
  const blocks = Math.ceil(200_000_000 / block.length);
  for (let index = 0; index < blocks; index++) writeSync(file, block);
  writeSync(file, "ERROR the Needle\n");
  closeSync(file);
  const [little, much] = [searchApart(small, "needle"), searchApart(path, "needle")];
  expect(little).toMatchObject({ lines: 20_001, found: "L20001" });
  expect(much).toMatchObject({ lines: blocks * 20_000 + 1, found: `L${blocks * 20_000 + 1}` });
  // Less than half of the file more; most of it is garbage that nobody has collected yet.
  expect(much.megabytes - little.megabytes).toBeLessThan(100);
});

describe("filters", () => {
  const log = [
    "2026-03-01T10:00:00Z INFO uart1: opened",
    "2026-03-01T10:05:00Z ERROR uart1: RX overrun",
    "  at handler 3",
    "2026-03-01T12:10:00+02:00 WARN uart1: fifo level high",
    "2026-03-01T10:15:00Z error: rx Overrun again",
    "2026-03-01T10:20:00Z FATAL core: halted",
  ].join("\n");

  test.each([
    [{ keywords: ["rx overrun"] }, [2, 5]],
    [{ keywords: ["fifo", "halted"] }, [4, 6]],
    [{ level: "error" }, [2, 5, 6]],
    [{ level: "warning", keywords: ["uart1"] }, [2, 4]],
    // A line without a time belongs to the one before it; zones count.
    [{ from: "2026-03-01T10:05", to: "2026-03-01T10:15" }, [2, 3, 4]],
    [{ from: "2026-03-01T12:10:00+02:00" }, [4, 5, 6]],
    [{ to: "2026-03-01" }, []],
    [{ keywords: ["(.*)+$"] }, []],
  ])("%o", async (asked, expected) => {
    place("filters.log", log);
    const { shown, matched } = await scan("filters.log", asked);
    expect(shown.map(({ line }) => line)).toEqual(expected.map((number) => `L${number}`));
    expect(matched).toBe(expected.length);
  });

  test("show a few lines, the last one too, and go on where they are told", async () => {
    place("many.log", Array.from({ length: 50 }, (_, index) => `INFO line ${index + 1}`).join("\n"));
    const first = await scan("many.log", { keywords: ["line"], limit: 3 });
    expect(first.shown.map(({ line }) => line)).toEqual(["L1", "L2", "L3"]);
    expect(first).toMatchObject({ matched: 50, more: 47, last: { line: "L50" } });
    const next = await scan("many.log", { keywords: ["line"], limit: 3, from_line: 49 });
    expect(next).toMatchObject({ shown: [{ line: "L49" }, { line: "L50" }], more: 0, last: null });
  });

  test("without one, a log of more lines than are shown asks for more", async () => {
    place("many.log", Array.from({ length: 50 }, (_, index) => `INFO line ${index + 1}`).join("\n"));
    expect((await read("many.log")).status).toBe("require_more");
    expect((await read("many.log", { limit: 25, from_line: 26 })).status).toBe("require_more");
    expect((await read("many.log", { keywords: ["line 7"] })).status).toBe("success");
  });

  test("count, with the first and last line of each value", async () => {
    const lines = ["a 10.0.0.1 x", "b 10.0.0.2 x", "c 10.0.0.1 x", "nothing", "d rhost=far.example.org user=root"];
    place("count.log", lines.join("\n"));
    const { counted } = await scan("count.log", { count_by: "address" });
    expect(counted).toEqual([
      { value: "10.0.0.1", count: 2, first: "L1", last: "L3" },
      { value: "10.0.0.2", count: 1, first: "L2", last: "L2" },
      { value: "far.example.org", count: 1, first: "L5", last: "L5" },
    ]);
  });

  test("that are none are refused", async () => {
    expect(await read("count.log", { from: "yesterday" })).toMatchObject({
      status: "failure",
      output: { type: "INVALID_PARAMETERS", error: "from: write it as 2026-03-01T10:00" },
    });
    expect(await read("count.log", { from: "2026-13-01" })).toMatchObject({
      status: "failure",
      output: { type: "NO_TIME" },
    });
  });
});

describe("time stamps", () => {
  test.each([
    ["2026-03-01T10:00:00.123Z x", "ISO", "2026-03-01T10:00:00"],
    ["2026-03-01 10:00:00,5 x", "ISO", "2026-03-01T10:00:00"],
    ["2026-03-01T10:00:00+0130 x", "ISO", "2026-03-01T08:30:00"],
    ["[2026-03-01T10:00:00Z] x", "ISO", "2026-03-01T10:00:00"],
    ["<165>1 2026-03-01T10:00:00Z host x", "ISO", "2026-03-01T10:00:00"],
    ["[Sun Dec 04 04:47:44 2005] [error] x", "asctime", "2005-12-04T04:47:44"],
    ["Dec  4 04:47:44 host x", "syslog", "2020-12-04T04:47:44"],
    ["<13>Feb 29 04:47:44 host x", "syslog", "2020-02-29T04:47:44"],
  ])("%s", (line, format, moment) => {
    const stamp = readStamp(line);
    expect(stamp?.format).toBe(format);
    expect(stamp && tellMoment(momentOf(stamp, 2020))).toBe(moment);
  });

  test.each(["", "error at 10:00:00", "Foo 12 10:00:00", "2026-13-01T10:00:00Z", "2026-03-01T10:99", "123456789"])(
    "%j has none",
    (line) => {
      expect(readStamp(line)).toBeNull();
    },
  );

  test("without a year take it from the file's date, also over the turns of the year", async () => {
    const path = place(
      "turns.log",
      [
        "Nov 30 23:00:00 h a",
        "Dec 31 23:59:59 h b",
        "Jan  1 00:00:01 h c",
        "Dec 31 23:59:59 h late",
        "Jan  1 00:00:02 h d",
        "Feb  3 01:00:00 h e",
      ].join("\n"),
    );
    utimesSync(path, new Date("2024-02-03T12:00:00Z"), new Date("2024-02-03T12:00:00Z"));
    const all = await scan("turns.log");
    expect(all).toMatchObject({ begins: "2023-11-30T23:00:00", ends: "2024-02-03T01:00:00" });
    expect(all.notes.join()).toContain("2023 is taken for the first one, since the file is of 2024-02-03");
    const { shown } = await scan("turns.log", { from: "2024-01-01", to: "2024-01-02" });
    expect(shown.map(({ line }) => line)).toEqual(["L3", "L5"]);
  });

  test("that would be later than the file are of the year before", async () => {
    const path = place("before.log", "Dec 10 06:55:46 h a\n");
    utimesSync(path, new Date("2024-06-01T00:00:00Z"), new Date("2024-06-01T00:00:00Z"));
    expect(await scan("before.log")).toMatchObject({ begins: "2023-12-10T06:55:46" });
  });
});

test.each([
  ["2026 ERROR x", "error"],
  ["[Sun] [error] x", "error"],
  ["sshd[1]: fatal: Write failed", "fatal"],
  ["x Warning: y", "warning"],
  ['{"level":"warn","msg":"ERRORS"}', "warning"],
  ["INFO no ERROR today", "info"],
  ["terror alert mode", "none"],
  ["NOTICE n", "info"],
])("the level of %j is %s", (line, level) => {
  expect(levelOf(line)).toBe(level);
});

test("what lines are counted by", () => {
  const failed =
    "Dec 10 06:55:48 LabSZ sshd[24200]: Failed password for invalid user webmaster from 173.234.31.186 port 38926 ssh2";
  expect(traitOf("address", failed, null)).toBe("173.234.31.186");
  expect(traitOf("user", failed, null)).toBe("webmaster");
  expect(traitOf("process", failed, null)).toBe("sshd");
  expect(traitOf("hour", failed, Date.UTC(2025, 11, 10, 6, 55))).toBe("2025-12-10T06h");
  expect(traitOf("message", failed, null)).toBe(
    "LabSZ sshd[#]: Failed password for invalid user webmaster from #.#.#.# port # ssh#",
  );
  expect(traitOf("address", "no address, version 1.2.3", null)).toBeNull();
});

describe("what cannot be read is refused with a reason and advice", () => {
  const binary = Buffer.from(Array.from({ length: 4000 }, (_, index) => (index * 37) % 256));

  test.each([
    ["missing", () => "missing.log", "NOT_FOUND"],
    ["a folder", () => "", "NOT_A_FILE"],
    ["binary", () => place("binary.log", binary), "BINARY"],
    ["UTF-16", () => place("wide.log", Buffer.from("\ufeffERROR x\n", "utf16le")), "BINARY"],
    ["gzip'd binary", () => place("binary.gz", gzipSync(binary)), "BINARY"],
    ["zstd", () => place("a.zst", Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0])), "PACKED"],
    [
      "damaged gzip",
      () => place("bad.gz", Buffer.concat([gzipSync("x".repeat(99)).subarray(0, 10), Buffer.alloc(50, 7)])),
      "DAMAGED",
    ],
    ["outside", () => "/etc/passwd", "NOT_ALLOWED"],
    ["outside by dots", () => "../../../../../../../../etc/passwd", "NOT_ALLOWED"],
    ["a NUL in the name", () => "a\0.log", "NOT_ALLOWED"],
  ])("%s", async (_, make, type) => {
    const result = await read(make() || folder);
    expect(result).toMatchObject({
      status: "failure",
      output: { type, error: expect.stringMatching(/\w/), advice: expect.stringMatching(/\w/) },
    });
  });

  test("a link that leads out", async () => {
    symlinkSync("/etc/passwd", join(folder, "link.log"));
    expect(await read("link.log")).toMatchObject({ output: { type: "NOT_ALLOWED" } });
  });

  test("a pipe, without waiting for anybody to write into it", async () => {
    execFileSync("mkfifo", [join(folder, "pipe.log")]);
    expect(await read("pipe.log")).toMatchObject({ output: { type: "NOT_A_FILE" } });
  });

  test.runIf(process.platform === "linux")("a file whose reading fails", async () => {
    const context = { signal, clients: { logFolders: ["/proc/self"] }, state: {} };
    expect(await execute({ file: "mem" }, context)).toMatchObject({ output: { type: "UNREADABLE" } });
  });

  test("another log than the one that the task is about", async () => {
    mkdirSync(join(folder, "other"), { recursive: true });
    place("other/b.log", "x");
    expect(await read("other/b.log", {}, { log: { file: "a.log" } })).toMatchObject({ output: { type: "OTHER_LOG" } });
  });
});

describe("what is odd and can be read", () => {
  test("an empty log", async () => {
    place("empty.log", "");
    expect(await scan("empty.log")).toMatchObject({ lines: 0, matched: 0, notes: ["the log is empty"] });
  });

  test("a gzip'd log, of several members, is unpacked", async () => {
    place("app.log.gz", Buffer.concat([gzipSync("INFO a\n"), gzipSync("ERROR b\n")]));
    const { shown, notes } = await scan("app.log.gz", { level: "error" });
    expect(shown).toEqual([{ line: "L2", text: "ERROR b" }]);
    expect(notes.join()).toContain("gzip");
  });

  test("a gzip'd log that ends in the middle is read so far, and it is said", async () => {
    const lines = Array.from({ length: 9000 }, (_, index) => `INFO ${index} ${(index * 7919) % 10_007}`).join("\n");
    place("half.log.gz", gzipSync(lines).subarray(0, 20_000));
    const { lines: count, notes } = await scan("half.log.gz");
    expect(count).toBeGreaterThan(100);
    expect(notes.join()).toContain("ends in the middle");
  });

  test("a few NULs and control characters, which are not shown", async () => {
    place("noise.log", `${"INFO ok\n".repeat(100)}ERROR \0\u001b[31mred\u202e x\n`);
    const { shown } = await scan("noise.log", { level: "error" });
    expect(shown).toEqual([{ line: "L101", text: "ERROR  [31mred  x" }]);
  });

  test("a file of the system that says it has no bytes", { skip: process.platform !== "linux" }, async () => {
    const result = await execute({ file: "status" }, { signal, clients: { logFolders: ["/proc/self"] }, state: {} });
    expect(result.metadata?.lines).toBeGreaterThan(10);
  });
});

describe("a log that changes while it is read", () => {
  const block = "2026-03-01T10:00:00Z INFO filling\n".repeat(60_000);

  async function readWhile(name: string, change: (path: string) => void) {
    const path = place(name, block);
    const log = await openLog(path, signal);
    let lines = 0;
    for await (const batch of readLines(log.chunks)) {
      if (lines === 0) change(path);
      lines += batch.length;
    }
    const notes = await log.changes();
    await log.close();
    return { lines, notes: notes.join("; ") };
  }

  test("is read as it was when lines are added", async () => {
    const { lines, notes } = await readWhile("grows.log", (path) => appendFileSync(path, "INFO new\n"));
    expect(lines).toBe(60_000);
    expect(notes).toContain("lines were added");
  });

  test("is said to have shrunk", async () => {
    const { lines, notes } = await readWhile("shrinks.log", (path) => truncateSync(path, 100));
    expect(lines).toBeLessThan(60_000);
    expect(notes).toContain("shrank from");
  });

  test("is said to have been rotated, and the old file is read to its end", async () => {
    const { lines, notes } = await readWhile("turns-over.log", (path) => {
      renameSync(path, `${path}.1`);
      writeFileSync(path, "INFO new file\n");
    });
    expect(lines).toBe(60_000);
    expect(notes).toContain("another file took its place");
  });

  test("is said to be gone", async () => {
    const { lines, notes } = await readWhile("goes.log", (path) => renameSync(path, `${path}.1`));
    expect(lines).toBe(60_000);
    expect(notes).toContain("removed or renamed");
  });
});

test("a cancelled run stops reading", async () => {
  place("stop.log", "INFO x\n");
  const context = { signal: AbortSignal.abort(), clients: { logFolders: [folder] }, state: {} };
  await expect(execute({ file: "stop.log" }, context)).rejects.toThrow(/abort/i);
});
