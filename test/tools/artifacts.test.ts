import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CallResult } from "../../src/state/execution.ts";
import { readSlice, searchIn, type Answer, type Position, type Search } from "../../src/tools/artifact-text.ts";
import { artifactTools, setAside, type Preview } from "../../src/tools/artifacts.ts";
import { jsonBytes } from "../../src/internal/json.ts";
import { checkArguments } from "../../src/workflow/calls.ts";
import type { Artifact } from "../../src/workflow/artifact.ts";

const ok = (value: unknown): CallResult => ({ id: "12.0", tool: "read_log", status: "ok", value });
const artifactOf = (text: string, id = "12.0-3fa9c1d2"): Artifact => ({
  id,
  tool: "read_log",
  kind: "text",
  text,
  bytes: Buffer.byteLength(text),
  at: 0,
});

/** Sets a value aside that is large enough for it. */
function aside(value: unknown) {
  const { result, artifact } = setAside("12.0", ok(value));
  if (!artifact) throw new Error("nothing was set aside");
  return { result, artifact, whole: { ...artifact, at: 0 } };
}

function expectBounded(answer: Answer): void {
  expect(answer.text.length).toBeLessThanOrEqual(4000);
  expect(jsonBytes(answer.text)).toBeLessThanOrEqual(4096);
}

/** Reads to the end as a model would: every answer, one after the other. */
function readAll(artifact: Artifact, lines?: number): readonly Answer[] {
  const answers: Answer[] = [];
  let at: Position | null = { from: 1, character: 0 };
  while (at) {
    const answer = readSlice(artifact, { ...at, ...(lines === undefined ? {} : { lines }) });
    expectBounded(answer);
    // It goes forward, whatever the text is.
    if (answer.next) expect([answer.next.from, answer.next.character]).not.toEqual([at.from, at.character]);
    answers.push(answer);
    at = answer.next;
  }
  return answers;
}

/** Puts together what the answers show. */
function shownIn(answers: readonly Answer[]): string {
  let text = "";
  let before = 0;
  for (const answer of answers) {
    for (const line of answer.text.split("\n").slice(1, -1)) {
      const [, number, content] = /^L(\d+)(?: \(characters [^)]*\))?: (.*)$/su.exec(line) ?? [];
      if (content === undefined) throw new Error(`not a shown line: ${line}`);
      if (before > 0 && Number(number) !== before) text += "\n";
      before = Number(number);
      text += content;
    }
  }
  return answers.at(-1)?.text.endsWith("end of the text") ? `${text}\n` : text;
}

describe("setting aside", () => {
  test("a value of at most 4,096 bytes stays as it is", () => {
    for (const value of [undefined, null, "x".repeat(4094), { list: [1, 2, 3] }]) {
      const result = ok(value);
      expect(setAside("12.0", result)).toEqual({ result, artifact: null });
    }
    expect(setAside("12.0", ok("x".repeat(4095))).artifact).not.toBeNull();
  });

  test("up to 16,384 bytes the value stays in the result, which names the artifact", () => {
    const value = { rows: Array.from({ length: 500 }, (_, index) => `row ${index}`) };
    const { result, artifact } = aside(value);
    expect(result).toEqual({ ...ok(value), artifact: artifact.id });
    expect(artifact).toMatchObject({ tool: "read_log", kind: "json", text: JSON.stringify(value, null, 1) });
    expect(artifact.id).toMatch(/^12\.0-[0-9a-f]{8}$/);
  });

  test("the same value has the same id, another one another", () => {
    const ids = ["a", "a", "b"].map((letter) => aside(letter.repeat(5000)).artifact.id);
    expect(ids[0]).toBe(ids[1]);
    expect(ids[0]).not.toBe(ids[2]);
    expect(setAside("13.0", ok("a".repeat(5000))).artifact?.id).toMatch(/^13\.0-/);
  });

  test("700,000 characters become a preview of beginning and end, cut at line ends, and the whole is kept", () => {
    const lines = Array.from({ length: 10_000 }, (_, index) => `${index}`.padStart(6, "0").padEnd(69, "."));
    const text = `${lines.join("\n")}\n`;
    expect(text).toHaveLength(700_000);
    const { result, artifact } = aside(text);
    expect(artifact.text).toBe(text);
    const { preview, ...rest } = result.value as Preview;
    expect(rest).toEqual({ artifact: artifact.id, bytes: 700_000, lines: 10_000 });
    expect(result.artifact).toBe(artifact.id);
    const shown = preview.split("\n");
    expect(shown[0]).toBe(lines[0]);
    expect(shown.at(-2)).toBe(lines.at(-1));
    const note = shown.find((line) => line.startsWith("…")) ?? "";
    for (const line of shown.filter((one) => one !== note && one !== "")) expect(lines).toContain(line);
    const leftOut = Number(/^… ([\d,]+) characters left out …$/.exec(note)?.[1]?.replaceAll(",", ""));
    expect(leftOut + preview.length - note.length - 2).toBe(700_000);
    expect(jsonBytes(result.value)).toBeLessThan(3000);
  });

  test("a shortening is never shortened", () => {
    const { result } = aside("x".repeat(700_000));
    expect(setAside("12.0", result)).toEqual({ result, artifact: null });
  });

  test("no answer of reading or searching is large enough to be set aside", () => {
    for (const letter of ["x", "é", "語", "\u0001", '"', "\ud83d\ude00", "\n"]) {
      const whole = artifactOf(letter.repeat(20_000));
      for (const { text } of [readSlice(whole), searchIn(whole, { text: letter })]) {
        expect(setAside("13.0", ok(text)).artifact === null).toBe(true);
      }
    }
  });

  test("a preview keeps few tokens' worth of any writing, and divides no character", () => {
    expect((aside(`x${"\ud83d\ude00".repeat(20_000)}`).result.value as Preview).preview).not.toMatch(/\p{Surrogate}/u);
    expect(
      (aside(`${"x".repeat(1499)}\ud83d\ude00 ${"x".repeat(20_000)}`).result.value as Preview).preview,
    ).not.toMatch(/\p{Surrogate}/u);
    for (const letter of ["語", "\ud83d\ude00", "\u0001"]) {
      const { result, artifact } = aside(letter.repeat(50_000));
      expect(jsonBytes(result.value)).toBeLessThan(3000);
      expect(JSON.stringify(result.value)).not.toMatch(/\\ud[89a-f]/);
      expect(artifact.text).toBe(letter.repeat(50_000));
    }
  });

  test("what UTF-8 cannot hold is replaced once, so that id, size and text agree with what is stored", () => {
    const { artifact } = aside(`${"x".repeat(5000)}\ud83d`);
    expect(artifact.text.endsWith("x\ufffd")).toBe(true);
    expect(artifact.bytes).toBe(5003);
  });

  test("more than 50 MB are cut, at a character's end, with a note", () => {
    const { artifact } = aside("語".repeat(17_000_000));
    expect(artifact.bytes).toBeLessThanOrEqual(50_000_000);
    expect(artifact.bytes).toBe(Buffer.byteLength(artifact.text));
    const note = artifact.text.slice(artifact.text.indexOf("\n"));
    const kept = artifact.text.indexOf("\n") * 3;
    expect(note).toBe(`\n… cut here: ${(51_000_000 - kept).toLocaleString("en-US")} more bytes were not kept\n`);
  });

  test("a value of more than 50 MB is text from then on, since what was cut is no JSON", () => {
    const { artifact } = aside(Array.from({ length: 520 }, () => "x".repeat(100_000)));
    expect(artifact.kind).toBe("text");
    expect(() => JSON.parse(artifact.text)).toThrow(SyntaxError);
  });

  describe("secrets", () => {
    const secret = `sk-${"a1B2".repeat(8)}`;
    beforeEach(() => {
      process.env.STATECARD_TEST_PASSWORD = 'pass "word" 1234';
    });
    afterEach(() => {
      delete process.env.STATECARD_TEST_PASSWORD;
    });

    test("are taken out before anything is cut or stored", () => {
      for (const value of [
        `${"x".repeat(1490)} ${secret} ${"y".repeat(50_000)}`,
        { log: [`${"x".repeat(5000)} Bearer ${secret}`], [secret]: 1 },
      ]) {
        const { result, artifact } = aside(value);
        expect(JSON.stringify([result, artifact])).not.toContain("sk-a1B2");
        expect(artifact.text).toContain("[redacted]");
      }
    });
  });
});

describe("reading", () => {
  test("numbered lines, as many as fit or as were asked for, and where to go on", () => {
    const whole = artifactOf(Array.from({ length: 30 }, (_, index) => `line ${index + 1}`).join("\n"));
    expect(readSlice(whole, { from: 12, lines: 2 })).toEqual({
      text: "12.0-3fa9c1d2: lines 12–13 of 30\nL12: line 12\nL13: line 13\n17 lines left; go on with from 14",
      next: { from: 14, character: 0 },
    });
    expect(readSlice(whole, { from: 30 })).toEqual({
      text: "12.0-3fa9c1d2: line 30 of 30\nL30: line 30\nend of the text, without a line break at its end",
      next: null,
    });
    expect(readSlice(whole).next).toBeNull();
    expect(readSlice(whole, { from: 31 }).text).toBe("12.0-3fa9c1d2 has 30 lines: there is no line 31");
  });

  test("a very long line in pieces", () => {
    const whole = artifactOf(`short\n${"x".repeat(120_000)}\nlast\n`);
    expect(readSlice(whole)).toMatchObject({ next: { from: 2, character: 0 } });
    const { text, next } = readSlice(whole, { from: 2 });
    expect(next?.from).toBe(2);
    const reached = next?.character ?? 0;
    expect(reached).toBeGreaterThan(3000);
    const shown = reached.toLocaleString("en-US");
    expect(text).toContain(`L2 (characters 0–${shown} of 120,000): xxx`);
    const rest = (120_000 - reached).toLocaleString("en-US");
    expect(text).toContain(`${rest} characters of line 2 and 1 line left; go on with from 2, character ${reached}`);
    const end = readSlice(whole, { from: 2, character: 119_990 });
    expect(end.text).toBe(
      "12.0-3fa9c1d2: lines 2–3 of 3\nL2 (characters 119,990–120,000 of 120,000): xxxxxxxxxx\nL3: last\nend of the text",
    );
    expect(readSlice(whole, { from: 2, character: 999_999 })).toMatchObject({ next: null });
  });

  test("a character in the middle of a pair means the pair", () => {
    const { text } = readSlice(artifactOf("a\ud83d\ude00b"), { character: 2 });
    expect(text).toContain("(characters 1–4 of 4): \ud83d\ude00b");
  });

  test("700,000 characters to the end, in a bounded number of answers", () => {
    const lines = Array.from({ length: 10_000 }, (_, index) => `${index}`.padStart(6, "0").padEnd(69, "."));
    const { whole } = aside(`${lines.join("\n")}\n`);
    const answers = readAll(whole);
    expect(answers.length).toBeLessThan(250);
    expect(shownIn(answers)).toBe(whole.text);
  });

  test("five very long lines to the end: every character once, in a bounded number of answers", () => {
    const line = (letter: string) =>
      Array.from({ length: 20_000 }, (_, index) => `${letter}${index}`)
        .join(",")
        .padEnd(140_000, letter);
    const { whole } = aside(["a", "b", "c", "d", "e"].map(line).join("\n"));
    const answers = readAll(whole);
    expect(answers.length).toBeLessThan(225);
    expect(shownIn(answers)).toBe(whole.text);
  });

  test("an answer is used to the full where that is possible", () => {
    const { whole } = aside({ rows: Array.from({ length: 5000 }, (_, index) => ({ id: index, name: `n${index}` })) });
    for (const answer of readAll(whole).slice(0, -1)) expect(jsonBytes(answer.text)).toBeGreaterThan(3500);
  });

  const texts = fc.oneof(
    fc.string({ unit: "binary", maxLength: 300 }),
    fc
      .array(fc.constantFrom("\n", "\r\n", "\r", "", "a", '"', "\\", "語", "\ud83d\ude00", "\u0000", "\u2028", "…"))
      .map((parts) => parts.join("")),
    fc
      .array(
        fc.tuple(
          fc.constantFrom("x", "語", "\ud83d\ude00", "\n", "a\n", "\r\n", "\u0001", "L1: "),
          fc.integer({ min: 1, max: 4000 }),
        ),
        { maxLength: 6 },
      )
      .map((parts) => parts.map(([part, times]) => part.repeat(times)).join("")),
  );

  test("any text is given back by reading slice by slice", () => {
    fc.assert(
      fc.property(texts, fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined, freq: 1 }), (text, lines) => {
        if (text === "") return;
        const few = lines !== undefined && text.length > 2000 ? 50 : lines;
        expect(shownIn(readAll(artifactOf(text), few))).toBe(text);
      }),
      { numRuns: 300 },
    );
  });

  test("any place that is asked for gives a bounded answer that goes forward", () => {
    const place = fc.record({ from: fc.integer({ min: 1, max: 20 }), character: fc.nat(50_000) });
    fc.assert(
      fc.property(texts, place, (text, where) => {
        const answer = readSlice(artifactOf(text), where);
        expectBounded(answer);
        if (!answer.next) return;
        expect(answer.next.from > where.from || answer.next.character > 0).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});

describe("searching", () => {
  /** Searches to the end; the lines of all answers. */
  function searchAll(artifact: Artifact, search: Search): readonly string[] {
    const shown: string[] = [];
    let at: Position | null = { from: 1, character: 0 };
    for (let turns = 0; at; turns++) {
      expect(turns).toBeLessThan(5000);
      const answer = searchIn(artifact, { ...search, ...at });
      expectBounded(answer);
      shown.push(...answer.text.split("\n").slice(1, -1));
      if (answer.next) expect(answer.next).not.toEqual(at);
      at = answer.next;
    }
    return shown;
  }

  test("short lines whole with their numbers, once each", () => {
    const whole = artifactOf("one\ntwo, two\nthree\nTWO\n");
    expect(searchIn(whole, { text: "two" })).toEqual({
      text: '"two" in 12.0-3fa9c1d2, from line 1 of 4 on: 1 place\nL2: two, two\nnothing left to search',
      next: null,
    });
    expect(searchIn(whole, { text: "two", ignoreCase: true }).text).toContain("2 places\nL2: two, two\nL4: TWO\n");
    expect(searchIn(whole, { text: "four" }).text).toContain("not found");
    expect(searchIn(whole, { text: "two", from: 3 }).text).toContain("from line 3 of 4 on: not found");
    expect(searchIn(whole, { text: "two", from: 9 }).text).toContain("there is no line 9");
  });

  test("literally: signs of patterns mean themselves", () => {
    const whole = artifactOf("a.b\naxb\n[x] (1+1)? ^$ \\d {2} a|b /\n");
    expect(searchAll(whole, { text: "a.b" })).toEqual(["L1: a.b"]);
    expect(searchAll(whole, { text: "[x] (1+1)? ^$ \\d {2} a|b /" })).toHaveLength(1);
  });

  test("in long lines around the match, with the place to read on from", () => {
    const line = `${"x".repeat(5000)}needle${"y".repeat(60_000)}needle${"z".repeat(5000)}`;
    const whole = artifactOf(`first\n${line}\nlast`);
    const [first, second, ...rest] = searchAll(whole, { text: "needle" });
    expect(first).toBe(`L2 (characters 4,900–5,106 of 70,012): ${line.slice(4900, 5106)}`);
    expect(second).toMatch(/^L2 \(characters 64,906–65,112 of 70,012\): y+needlez+$/);
    expect(rest).toEqual([]);
    expect(readSlice(whole, { from: 2, character: 5000 }).text).toContain("of 70,012): needleyyy");
  });

  test("not more than asked for, with what is left", () => {
    const whole = artifactOf(Array.from({ length: 50 }, (_, index) => `hit ${index}`).join("\n"));
    const answer = searchIn(whole, { text: "hit", max: 3 });
    expect(answer.text).toBe(
      '"hit" in 12.0-3fa9c1d2, from line 1 of 50 on: 3 places\nL1: hit 0\nL2: hit 1\nL3: hit 2\n47 more places; go on with from 4, character 0',
    );
    expect(searchAll(whole, { text: "hit", max: 3 })).toHaveLength(50);
    expect(searchAll(whole, { text: "hit" })).toHaveLength(50);
  });

  test("a hit everywhere in one endless line ends all the same", () => {
    const whole = artifactOf("ab".repeat(350_000));
    const { text } = searchIn(whole, { text: "ab" });
    expect(text).toContain("at least 1,000 more places; go on with from 1, character");
    const shown = searchAll(whole, { text: "ab", max: 100 });
    expect(shown.join("").replaceAll(/L1 \([^)]*\): /g, "").length).toBeGreaterThan(700_000 - 1);
  });

  test("every line that has it is found, whatever the text and the search are", () => {
    const parts = fc.array(fc.constantFrom("a", "b", "aa", "\n", "\r\n", "語", "\ud83d\ude00", " ".repeat(400), '"'), {
      maxLength: 60,
    });
    const searches = fc.constantFrom("a", "aa", "ab", "語", "\ud83d\ude00", " ", "\ud83d\ude00a", '"', "nowhere");
    fc.assert(
      fc.property(parts, searches, fc.integer({ min: 1, max: 30 }), (items, text, max) => {
        const whole = artifactOf(`x${items.join("")}`);
        const lines = whole.text.split("\n");
        const found = new Set(searchAll(whole, { text, max }).map((line) => Number(/^L(\d+)/.exec(line)?.[1])));
        const right = lines.flatMap((line, index) => (line.includes(text) ? [index + 1] : []));
        expect([...found]).toEqual(right);
      }),
      { numRuns: 300 },
    );
  });
});

describe("the tools", () => {
  const { readArtifact, searchArtifact } = artifactTools;
  const whole = artifactOf("one\ntwo\nthree");
  const inTask = (known: readonly Artifact[]) =>
    ({
      artifacts: {
        read: async (id: string) => known.find((one) => one.id === id) ?? null,
        list: async () => known,
      },
    }) as never;

  test("read and search in what the task has set aside", async () => {
    expect(await readArtifact.run({ id: whole.id, from: 2, lines: 1 }, inTask([whole]))).toContain("L2: two");
    expect(await searchArtifact.run({ id: whole.id, text: "three" }, inTask([whole]))).toContain("L3: three");
  });

  test("an unknown id is answered with those that there are", async () => {
    await expect(async () => readArtifact.run({ id: "12.0" }, inTask([]))).rejects.toThrow("no result of this task");
    await expect(async () => searchArtifact.run({ id: "12.0", text: "x" }, inTask([whole]))).rejects.toThrow(
      'there is no artifact "12.0"; there are: 12.0-3fa9c1d2 (read_log, 13 bytes)',
    );
    const many = Array.from({ length: 30 }, (_, index) => artifactOf("x", `${index}.0-00000000`));
    await expect(async () => readArtifact.run({ id: "?" }, inTask(many))).rejects.toThrow(
      /the latest 20 of 30 are: 10\.0-00000000 .*29\.0-00000000/,
    );
  });

  test("arguments that a strict output mode sends as null count as left out", () => {
    const read = checkArguments("readArtifact", readArtifact, { id: "a", from: null, lines: null, character: null });
    expect(read).toEqual({ ok: true, args: { id: "a" } });
    expect(checkArguments("readArtifact", readArtifact, { id: "a", from: 0 }).ok).toBe(false);
    expect(checkArguments("searchArtifact", searchArtifact, { id: "a", text: "" }).ok).toBe(false);
  });
});
