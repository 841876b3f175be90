import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkReport, sourcesOf, withMarks, withRightLines } from "../../graphs/log-detective/evidence.ts";
import { evidenceGuard } from "../../graphs/log-detective/guard.ts";

const state = {
  lines: [
    'L7 2026-03-01T10:00:00Z ERROR uart2: RX overrun, 3 bytes "lost"',
    "L19 2026-03-01T10:00:04Z WARN uart2: FIFO threshold 14 of 16",
    "L23 2026-03-01T10:00:09Z ERROR uart2: RX overrun, 5 bytes lost",
  ],
  readings: ["R2 with 'RX overrun': 2 of 40 lines match; 2 error; L7 to L23; '10.0.0.1' 2 times (L7 to L23)"],
  knowledge: ["KB-01 uart: output is garbled; shows RX overrun; cause the threshold is too high; confirmed"],
};
const sources = sourcesOf(state);

const RIGHT = [
  "Conclusion: the receive threshold of uart2 is too high (L7, L19, KB-01)",
  "Evidence:",
  `1. L7: "ERROR uart2: RX overrun, 3 bytes 'lost'" - the symptom`,
  '2. L19: "FIFO threshold 14 of 16" - a sign of KB-01',
  '3. R2: "2 of 40 lines match"',
  "Recommendations:",
  "1. lower it to 8",
  "Open:",
  "1. why L23 is longer",
].join("\n");

test("a report that what was read holds up passes", () => {
  expect(checkReport(RIGHT, sources)).toEqual([]);
  expect(evidenceGuard({ reply: RIGHT, patch: { report: RIGHT } }, state, false)).toBeNull();
});

describe("a claim is refused", () => {
  test.each([
    ["without a citation", '1. "RX overrun" occurs', "it cites no line"],
    ["whose line was not read", '1. L8: "RX overrun"', "L8 was not read"],
    ["whose quote stands nowhere", '1. L7: "TX overrun"', '"TX overrun" does not stand in L7'],
    ["whose quote stands in another line", '1. L7: "FIFO threshold"', '"FIFO threshold" does not stand in L7'],
    ["that quotes nothing", "1. L7: bytes were lost", "nothing of L7 is quoted"],
    ["that quotes one of its two lines only", '1. L7, L19: "RX overrun"', "nothing of L19 is quoted"],
    ["with a figure of its own", '1. L7: "RX overrun" - 12 times', "12 does not stand in L7"],
    ["with half of a figure", '1. L19: "FIFO threshold" - of 4', "4 does not stand in L19"],
    ["with a name of its own", '1. L7: "RX overrun" - on uart3', "uart3 does not stand in L7"],
    ["with a count that was not counted", '1. R2: "3 of 40 lines match"', '"3 of 40 lines match" does not stand in R2'],
    ["that names an issue that was not found", '1. L7: "RX overrun" - a sign of KB-02', "KB-02 was not read"],
    ["that only names an issue", "1. KB-01: it is so", "nothing of KB-01 is quoted"],
  ])("%s", (_, line, reason) => {
    const report = `Conclusion: The information is not sufficient\nEvidence:\n${line}`;
    expect(checkReport(report, sources)).toEqual([{ line, reason }]);
  });

  test.each([
    ["Conclusion: it is the threshold", "it cites no line"],
    ["Conclusion: it is the threshold (L23)", "L23 is not among the evidence"],
    ["Conclusion: 9 overruns (L7)", "9 does not stand in L7"],
    ["Conclusion: The information is not sufficient, but it is 0x3f", "it cites no line"],
  ])("%s", (conclusion, reason) => {
    const report = `${conclusion}\nEvidence:\n1. L7: "RX overrun"`;
    expect(checkReport(report, sources)).toEqual([{ line: conclusion, reason }]);
  });

  test.each([
    ["1. set UART_FCR to its default", "nothing that was read names UART_FCR"],
    ["1. write 0x0F to the controller", "nothing that was read names 0x0F"],
    ["1. look at L99", "L99 was not read"],
  ])("%s", (line, reason) => {
    const report = `Conclusion: The information is not sufficient\nRecommendations:\n${line}`;
    expect(checkReport(report, sources)).toEqual([{ line, reason }]);
  });

  test("also in a text that is no report", () => {
    expect(checkReport("All is well.\nIt was the FIFO.", sources)).toHaveLength(2);
  });
});

test("a wrong line number is put right where only one line says that", () => {
  const wrong = RIGHT.replace('2. L19: "FIFO', '2. L23: "FIFO');
  expect(withRightLines(wrong, sources)).toBe(RIGHT);
  expect(evidenceGuard({ reply: wrong, patch: { report: wrong } }, state, false)).toEqual({
    mend: { reply: RIGHT, patch: { report: RIGHT } },
  });
});

test("a wrong line number of what two lines say is not guessed", () => {
  const twice = RIGHT.replace(/1\. L7: .*/, '1. L19: "ERROR uart2: RX overrun"');
  expect(withRightLines(twice, sources)).toBe(twice);
  expect(evidenceGuard({ reply: null, patch: { report: twice } }, state, false)).toMatchObject({
    sendBack: expect.stringContaining("does not stand in L19"),
  });
});

test("what is no better the second time is marked", () => {
  const wrong = RIGHT.replace("14 of 16", "12 of 16");
  const output = { reply: wrong, patch: { report: wrong } };
  expect(evidenceGuard(output, state, false)).toHaveProperty("sendBack");
  const marked = withMarks(wrong, sources);
  expect(marked).toContain('"FIFO threshold 12 of 16" - a sign of KB-01 [not supported by what was read]');
  expect(evidenceGuard(output, state, true)).toEqual({ mend: { reply: marked, patch: { report: marked } } });
});

test("what the user is told is what was checked", () => {
  expect(evidenceGuard({ reply: "All is well.", patch: { report: RIGHT } }, state, false)).toEqual({
    mend: { reply: RIGHT, patch: { report: RIGHT } },
  });
  expect(evidenceGuard({ reply: "All is well.", patch: {} }, state, false)).toHaveProperty("sendBack");
  expect(evidenceGuard({ reply: null, patch: {} }, state, false)).toBeNull();
});

test("nothing that is added to a right report passes unless it was read", () => {
  const word = fc.stringMatching(/^[a-z]{3,9}$/);
  const claim = fc.oneof(
    fc.tuple(fc.integer({ min: 24, max: 999 }), word).map(([line, text]) => `L${line}: "${text}"`),
    fc.tuple(fc.constantFrom("L7", "L19", "L23", "R2"), word).map(([sign, text]) => `${sign}: "${text} q"`),
    fc.integer({ min: 100, max: 99_999 }).map((figure) => `L19: "FIFO threshold" - ${figure} of them`),
    word.map((text) => `${text} is to blame`),
  );
  fc.assert(
    fc.property(claim, (added) => {
      const report = RIGHT.replace("Recommendations:", `4. ${added}\nRecommendations:`);
      expect(checkReport(report, sources).map(({ line }) => line)).toEqual([`4. ${added}`]);
    }),
  );
});
