import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { faultOf, kindsOf, wrongQuotes } from "../../bench/detective-grade.ts";
import { temporaryFolder } from "../support/cli.ts";
import { openDetective } from "../support/detective.ts";
import { generateTask } from "../support/log-generator.ts";

const SEEDS = 200;
/** How many tasks run at once. */
const AT_ONCE = 8;

test(
  "on 200 logs that nobody has seen the rules find the cause, or say that there is none",
  { timeout: 600_000 },
  async () => {
    const folder = await temporaryFolder();
    const tasks = Array.from({ length: SEEDS }, (_, index) => generateTask(index + 1));
    for (const { seed, log } of tasks) writeFileSync(join(folder, `${seed}.log`), log);
    const { run } = openDetective([folder]);
    const wrong: string[] = [];
    const work = async (queue: Iterator<(typeof tasks)[number]>) => {
      for (let next = queue.next(); !next.done; next = queue.next()) {
        const { seed, question, log, truth } = next.value;
        const { report, execution } = await run(question, { file: `${seed}.log` }, `t${seed}`);
        const fault = report === null ? "no report" : faultOf(report, truth);
        const quotes = wrongQuotes(report ?? "", log);
        if (fault !== null || quotes.length > 0 || execution.status !== "completed" || execution.refused > 0) {
          wrong.push(`seed ${seed}: ${fault} ${quotes.join()} ${question} ${JSON.stringify(truth)}\n${report}`);
        }
      }
    };
    const queue = tasks.values();
    await Promise.all(Array.from({ length: AT_ONCE }, () => work(queue)));
    expect(wrong).toEqual([]);
    // Some of each kind, those without an answer among them.
    expect(Math.min(...Object.values(kindsOf(tasks)))).toBeGreaterThan(15);
  },
);

test("the generator gives the same log for the same seed, and other logs for others", () => {
  expect(generateTask(7)).toEqual(generateTask(7));
  expect(new Set(Array.from({ length: 50 }, (_, seed) => generateTask(seed).log)).size).toBe(50);
});
