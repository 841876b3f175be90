import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { readReport, wrongQuotes } from "../../bench/detective-grade.ts";
import { openDetective } from "../support/detective.ts";
import { dataFolder } from "../support/trajectories.ts";

// The facts are computed here from the logs' text, by other means than the example's.

const folder = join(dataFolder, "logs");
const why = existsSync(folder)
  ? null
  : `skipped: ${folder} not found; set STATECARD_DATA to the folder of recorded data`;

const OPENSSH = "OpenSSH/OpenSSH_2k.log";
const LINUX = "Linux/Linux_2k.log";
const APACHE = "Apache/Apache_2k.log";

const lines = (file: string) => readFileSync(join(folder, file), "utf8").split("\r\n");

/** For each value that a pattern finds in a line: in which lines, the most frequent first. */
function linesBy(file: string, pattern: RegExp): [string, number[]][] {
  const found = new Map<string, number[]>();
  for (const [index, line] of lines(file).entries()) {
    const value = pattern.exec(line)?.[1];
    if (value !== undefined) found.set(value, [...(found.get(value) ?? []), index + 1]);
  }
  return [...found].sort(([, a], [, b]) => b.length - a.length);
}

function linesWith(file: string, phrase: string | RegExp): number[] {
  const matches = (line: string) => (typeof phrase === "string" ? line.includes(phrase) : phrase.test(line));
  return lines(file).flatMap((line, index) => (matches(line) ? [index + 1] : []));
}

async function reported(question: string, file: string) {
  const { run } = openDetective([folder]);
  const done = await run(question, { file });
  expect(done.execution).toMatchObject({ status: "completed", refused: 0 });
  const report = done.report ?? "";
  expect(wrongQuotes(report, readFileSync(join(folder, file), "utf8"))).toEqual([]);
  return { report, read: readReport(report) };
}

describe("the facts of real logs", () => {
  beforeEach(({ skip }) => skip(why !== null, why ?? ""));

  test("break-in attempts by source", async () => {
    const sources = linesBy(OPENSSH, /\[([\d.]+)\] failed - POSSIBLE BREAK-IN ATTEMPT!$/);
    const all = sources.flatMap(([, numbers]) => numbers);
    const { report, read } = await reported("Which addresses made break-in attempts?", OPENSSH);
    expect(read.conclusion).toMatch(new RegExp(`^${all.length} of 2000 lines .* most often with ${sources[0]?.[0]} `));
    for (const [address, numbers] of sources) {
      expect(report).toContain(`'${address}' ${numbers.length} times (L${numbers[0]} to L${numbers.at(-1)})`);
    }
    expect(read.lines).toEqual([Math.min(...all), Math.max(...all)]);
  });

  test.each([
    [LINUX, "How many authentication failures are there, by source?"],
    [OPENSSH, "Where do the authentication failures come from?"],
  ])("authentication failures by source in %s", async (file, question) => {
    const all = linesWith(file, /authentication failure/);
    const sources = linesBy(file, /authentication failure.* rhost=(\S+)/);
    const { report, read } = await reported(question, file);
    expect(read.conclusion).toContain(`${all.length} of 2000 lines with 'authentication failure'`);
    for (const [source, numbers] of sources.filter(([, { length }]) => length > (sources[4]?.[1].length ?? 0))) {
      expect(report).toContain(`'${source}' ${numbers.length} times (L${numbers[0]} to L${numbers.at(-1)})`);
    }
    expect(read.lines).toEqual([all[0], all.at(-1)]);
  });

  test("error counts", async () => {
    const errors = linesWith(APACHE, "] [error] ");
    const { report, read } = await reported("How many errors are there?", APACHE);
    expect(read.conclusion).toContain(`${errors.length} of 2000 lines of level error or worse`);
    const states = linesWith(APACHE, "] [error] mod_jk child workerEnv in error state ");
    expect(report).toContain(`${states.length} times (L${states[0]} to L${states.at(-1)})`);
    expect(read.lines).toEqual([errors[0], errors.at(-1)]);
  });

  test("what people signed in with, and when it was tried", async () => {
    const users = linesBy(OPENSSH, /Failed password for (?:invalid user )?(\S*) from/);
    const { read, report } = await reported("How often does 'Failed password' occur, by user?", OPENSSH);
    const all = linesWith(OPENSSH, "Failed password");
    expect(read.conclusion).toContain(`${all.length} of 2000 lines`);
    // A line that repeats others names its user too.
    expect(report).toContain(`'${users[0]?.[0]}' ${linesWith(OPENSSH, /Failed password for root from/).length} times`);
    const early = linesWith(OPENSSH, /^Dec 10 0[67]:\d\d:\d\d .*Failed password/);
    const year = /^(\d{4})/.exec(await begins(OPENSSH))?.[1];
    const until = await reported(`How often does 'Failed password' occur before ${year}-12-10T08:00?`, OPENSSH);
    expect(until.read.conclusion).toContain(`${early.length} of 2000 lines`);
    expect(until.read.lines).toEqual([early[0], early.at(-1)]);
  });

  test("what is wrong with the web server, by a known issue", async () => {
    const { read } = await reported("What is wrong here?", APACHE);
    const signs = linesWith(APACHE, /Can't find child|mod_jk child init/);
    const symptoms = linesWith(APACHE, "workerEnv in error state");
    expect(read.issues).toEqual(["KB-18"]);
    expect(read.lines.every((line) => signs.includes(line) || symptoms.includes(line))).toBe(true);
    expect(read.lines.some((line) => signs.includes(line))).toBe(true);
  });

  test.each([
    ["Why does the watchdog reset the board?", OPENSSH],
    ["How often does 'kernel panic' occur?", APACHE],
    ["Why is the UART output garbled?", LINUX],
    ["How many break-in attempts are there?", APACHE],
    ["Why does the zebra sing?", LINUX],
  ])("it says where a log has no answer: %s", async (question, file) => {
    const { read } = await reported(question, file);
    expect(read).toMatchObject({ isInsufficient: true, lines: [], issues: [] });
  });
});

async function begins(file: string): Promise<string> {
  const { run } = openDetective([folder]);
  return (await run("How many errors are there?", { file })).log?.begins ?? "";
}
