import { describe, expect, test } from "vitest";
import { batchTaskId, readLines } from "../../src/batch/lines.ts";

describe("a file of tasks", () => {
  test("is one JSON object a line, each part optional; empty lines are no tasks", () => {
    const text = `\uFEFF{"id": "a", "message": "hello", "input": {"n": 1}}\r\n\n{}\n{"message": "b"}\n`;
    expect(readLines(text)).toEqual({
      lines: [
        { line: 1, id: "a", input: { n: 1, message: "hello" } },
        { line: 3, id: expect.stringMatching(/^\w{6}$/), input: {} },
        { line: 4, id: expect.stringMatching(/^\w{6}$/), input: { message: "b" } },
      ],
      broken: [],
    });
  });

  test.each([
    ["{", /not JSON/],
    ["[1]", /no task/],
    ["null", /no task/],
    [`{"mesage": "x"}`, /mesage/],
    [`{"id": 7}`, /id/],
    [`{"id": " "}`, /id/],
    [`{"id": "a\\u0007b"}`, /control characters/],
    [`{"message": "x", "input": {"message": "y"}}`, /twice/],
    [`{"id": "same"}`, /line 1 has the id "same" already/],
    [`{"message": "${"x".repeat(100_001)}"}`, /characters/],
  ])("a line %.40s is told with its number and stops no other", (broken, why) => {
    const read = readLines(`{"id": "same"}\n${broken}\n{"id": "b"}`);
    expect(read.lines.map(({ id }) => id)).toEqual(["same", "b"]);
    expect(read.broken).toEqual([{ line: 2, reason: expect.stringMatching(why) as string }]);
  });

  test("the same lines give the same tasks, wherever they stand; equal lines are tasks of their own", () => {
    const ids = (text: string) => readLines(text).lines.map((line) => batchTaskId("f", "w", line));
    const [a, b] = [`{"message": "a"}`, `{"id": "b", "message": "x"}`];
    expect(ids(`${a}\n${b}`)).toEqual(ids(`${b}\n\n${a}`).toReversed());
    expect(new Set(ids([a, a, a].join("\n"))).size).toBe(3);
    expect(ids(`${a}\n${a}`)).toEqual(ids([a, b, a].join("\n")).filter((_, index) => index !== 1));
  });

  test("another content, file, workflow or view is another task", () => {
    const [line] = readLines(`{"id": "a", "input": {"n": 1}}`).lines;
    const [changed] = readLines(`{"id": "a", "input": {"n": 2}}`).lines;
    if (!line || !changed) throw new Error("no line");
    const ids = [
      batchTaskId("f", "w", line),
      batchTaskId("f", "w", changed),
      batchTaskId("g", "w", line),
      batchTaskId("f", "v", line),
      batchTaskId("f", "w", line, "state"),
      batchTaskId("f", "w", line, "history"),
    ];
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids[0]).toMatch(/^f\.a\.\w{8}$/);
    expect(ids[4]).toMatch(/^f\.a\.state\.\w{8}$/);
  });
});
