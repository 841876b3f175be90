import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { execute as report } from "../../graphs/log-detective/skills/generate-report/skill.ts";
import { cleaned, find, readKnowledge } from "../../graphs/log-detective/skills/query-issue-kb/knowledge.ts";
import { execute as ask } from "../../graphs/log-detective/skills/query-issue-kb/skill.ts";
import { execute as snapshot } from "../../graphs/log-detective/skills/write-analysis-snapshot/skill.ts";
import { temporaryFolder } from "../support/cli.ts";

const context = (state = {}, clients = {}) => ({ signal: new AbortController().signal, clients, state });
const bundled = readKnowledge(new URL("../../graphs/log-detective/skills/query-issue-kb/issues.json", import.meta.url));

const entry = {
  id: "KB-90",
  component: "uart",
  symptom: "output is garbled",
  shows: ["RX overrun"],
  cause: "the threshold is too high",
  signs: ["FIFO threshold"],
  advice: ["lower it"],
  status: "confirmed",
};

describe("the knowledge base", () => {
  test("of the example has nothing odd in it", () => {
    expect(bundled.problems).toEqual([]);
    expect(bundled.entries.length).toBeGreaterThan(15);
  });

  test.each([
    ["Why is the UART output garbled?", ["KB-01", "KB-02", "KB-03", "KB-04"]],
    ["ERROR uart2: RX overrun, 3 bytes lost", ["KB-01", "KB-02"]],
    ["the network link drops", ["KB-09", "KB-10"]],
    ["Where do the break-in attempts come from?", ["KB-16"]],
    ["Why does the zebra sing?", []],
    ["the output", []],
    ["", []],
  ])("on %j gives %j", (query, expected) => {
    const found = find(bundled.entries, query, 4).map(({ id }) => id);
    expect(found.slice(0, expected.length)).toEqual(expected);
    if (expected.length === 0) expect(found).toEqual([]);
  });

  test("leaves out what says the same twice, in other order or case", () => {
    const again = { ...entry, id: "KB-91", cause: "The threshold is too HIGH", advice: ["something else"] };
    const { entries, problems } = cleaned([entry, again]);
    expect(entries.map(({ id }) => id)).toEqual(["KB-90"]);
    expect(problems).toEqual(["KB-91 says the same as KB-90 and was left out"]);
  });

  test("points out entries that contradict each other, and two of one id, and keeps them", () => {
    const { entries, problems } = cleaned([
      entry,
      { ...entry, id: "KB-91", status: "ruled out" },
      { ...entry, cause: "rain" },
    ]);
    expect(entries).toHaveLength(3);
    expect(problems).toEqual([
      "KB-90 (confirmed) and KB-91 (ruled out) contradict each other: the threshold is too high",
      "KB-90 stands for more than one entry",
    ]);
  });

  test("leaves out what is no entry, and says which", () => {
    const { entries, problems } = cleaned([entry, { ...entry, id: "KB-91", signs: [] }, "text"]);
    expect(entries).toHaveLength(1);
    expect(problems.map((problem) => problem.slice(0, 28))).toEqual([
      "entry 2 was left out: signs ",
      "entry 3 was left out:  Inval",
    ]);
  });

  test("that cannot be read is a failure with advice", async () => {
    const broken = join(await temporaryFolder(), "kb.json");
    const failed = { status: "failure", output: { type: "NO_KNOWLEDGE_BASE", advice: "answer from the log alone" } };
    for (const text of ["", "{}", "[1,"]) {
      writeFileSync(broken, text);
      expect(ask({ query: "uart" }, context({}, { knowledgeBase: broken }))).toMatchObject(failed);
    }
    expect(ask({ query: "uart" }, context({}, { knowledgeBase: "missing.json" }))).toMatchObject(failed);
    expect(ask({ query: "uart" }, context({}, { knowledgeBase: 7 }))).toMatchObject(failed);
  });

  test("tells what is odd about the entries that it gives", async () => {
    const file = join(await temporaryFolder(), "kb.json");
    writeFileSync(file, JSON.stringify([entry, { ...entry, id: "KB-91", status: "ruled out" }, { ...entry, id: "x" }]));
    const { output } = ask({ query: "uart garbled" }, context({}, { knowledgeBase: file }));
    expect(output).toMatchObject({
      of: 2,
      entries: [{ id: "KB-90" }, { id: "KB-91" }],
      notes: [expect.stringContaining("contradict")],
    });
  });
});

describe("snapshots", () => {
  const known = [
    { step: 1, title: "first", facts: ["a"], open: [] },
    { step: 3, title: "third", facts: ["b"], open: ["c"] },
  ];

  test("are written under the next number, or the one given", () => {
    const given = { action: "write", title: "now", facts: ["12 overruns (R2)"] };
    expect(snapshot(given, context({ snapshots: known }))).toMatchObject({
      status: "success",
      output: { snapshot: { step: 4, title: "now", facts: ["12 overruns (R2)"], open: [] } },
      newMemories: [{ type: "snapshot", text: "step 4, now: 12 overruns (R2)", priority: 3 }],
    });
    expect(snapshot({ ...given, step: 9 }, context({}))).toMatchObject({ output: { snapshot: { step: 9 } } });
  });

  test("are read back by their step, else the latest", () => {
    const read = (step?: number) =>
      snapshot({ action: "read", ...(step ? { step } : {}) }, context({ snapshots: known }));
    expect(read(3)).toMatchObject({ output: { snapshot: known[1] } });
    expect(read(1)).toMatchObject({ output: { snapshot: known[0] } });
    expect(read()).toMatchObject({ output: { snapshot: known[1] } });
    expect(read(2)).toMatchObject({ status: "failure", output: { type: "NO_SNAPSHOT", advice: "there are: 1, 3" } });
  });

  test("without anything in them are refused", () => {
    expect(snapshot({ action: "write", title: "now" }, context({}))).toMatchObject({
      output: { type: "EMPTY_SNAPSHOT" },
    });
    expect(snapshot({ action: "write", facts: ["a"] }, context({}))).toMatchObject({ status: "failure" });
  });
});

describe("the report", () => {
  test("has the conclusion first, then evidence, recommendations and what is open", () => {
    const given = {
      conclusion: "the threshold is too high",
      cites: ["L7", "KB-01"],
      sufficient: true,
      evidence: ['L7: RX "overrun" => the symptom', "R2: 2 of 40 lines match"],
      recommendations: ["lower it"],
      open: ["since when"],
    };
    expect(report(given, context())).toMatchObject({
      output: {
        report: [
          "Conclusion: the threshold is too high (L7, KB-01)",
          "Evidence:",
          `1. L7: "RX 'overrun'" - the symptom`,
          '2. R2: "2 of 40 lines match"',
          "Recommendations:",
          "1. lower it",
          "Open:",
          "1. since when",
        ].join("\n"),
      },
    });
  });

  test("says that the information is not sufficient where it is not", () => {
    expect(report({ conclusion: "no line shows it", sufficient: false }, context())).toMatchObject({
      output: { report: "Conclusion: The information is not sufficient: no line shows it" },
    });
    expect(report({ conclusion: "it is so", sufficient: true }, context())).toMatchObject({
      output: { type: "NO_EVIDENCE" },
    });
    expect(report({ conclusion: "x", sufficient: true, evidence: ["just so"] }, context())).toMatchObject({
      output: { type: "INVALID_PARAMETERS", error: "evidence.0: write it as L40: quote => meaning" },
    });
  });
});
