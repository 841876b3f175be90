import { defineTool, ToolError, type ToolContext } from "statecard";
import type { SkillFailure, SkillResult } from "./protocol.ts";
import * as report from "./skills/generate-report/skill.ts";
import * as issues from "./skills/query-issue-kb/skill.ts";
import * as reading from "./skills/read-log-file/skill.ts";
import * as snapshot from "./skills/write-analysis-snapshot/skill.ts";

/** Reading a very large log takes minutes. */
const READ_TIMEOUT_MS = 600_000;

/** Runs a skill's `execute` as a tool's body: a failure is an error that the model is told. */
function bodyOf<Output>(
  execute: (given: unknown, context: ToolContext) => SkillResult<Output> | Promise<SkillResult<Output>>,
) {
  return async (given: unknown, context: ToolContext) => {
    const result = await execute(given, context);
    if (result.status !== "failure") return result;
    const { type, error, advice } = result.output as SkillFailure;
    throw new ToolError(error, { type, hint: advice });
  };
}

/** The four skills as tools. */
export const tools = {
  "read-log-file": defineTool({
    description:
      "Reads a log of any size and gives the lines that match keywords, a level or a time, with numbers, counts and levels; without a filter it gives an overview.",
    parameters: reading.parameters,
    effect: "read",
    timeoutMs: READ_TIMEOUT_MS,
    run: bodyOf(reading.execute),
  }),
  "query-issue-kb": defineTool({
    description: "Finds known issues by a question or the text of log lines: what a log shows, cause, signs, advice.",
    parameters: issues.parameters,
    effect: "read",
    trusted: true,
    run: bodyOf(issues.execute),
  }),
  "write-analysis-snapshot": defineTool({
    description: "Keeps what is known so far under the number of a step (action write), or reads it back (read).",
    parameters: snapshot.parameters,
    effect: "none",
    run: bodyOf(snapshot.execute),
  }),
  "generate-report": defineTool({
    description:
      "Writes the report from a conclusion, quoted evidence with line numbers, recommendations, open points.",
    parameters: report.parameters,
    effect: "none",
    run: bodyOf(report.execute),
  }),
};
