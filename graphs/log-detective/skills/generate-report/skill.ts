import { z } from "zod";
import { unquoted } from "../../evidence.ts";
import { failure, readParameters, type SkillContext, type SkillResult } from "../../protocol.ts";

const cited = z.string().regex(/^(?:L|R|KB-)\d+$/, "cite a line (L123), a reading (R2) or an issue (KB-01)");
const sentence = z.string().min(1).max(400);
const EVIDENCE = /^((?:L|R|KB-)\d+): (.+?)(?: => (.+))?$/;

/** What it takes. */
const schema = z.object({
  conclusion: sentence,
  cites: z.array(cited).max(8).default([]),
  sufficient: z.boolean(),
  evidence: z.array(z.string().max(500).regex(EVIDENCE, "write it as L40: quote => meaning")).max(8).default([]),
  recommendations: z.array(sentence).max(4).default([]),
  open: z.array(sentence).max(6).default([]),
});

const INSUFFICIENT = "The information is not sufficient";

/** What it gives. */
export interface ReportOutput {
  readonly report: string;
}

/** Writes the report: the conclusion first, then the evidence with its lines, then what to do and what is open. */
export function execute(given: unknown, _context: SkillContext): SkillResult<ReportOutput> {
  const read = readParameters(schema, given);
  if (!read.ok) return read.failed;
  const { conclusion, cites, sufficient, evidence, recommendations, open } = read.parameters;
  if (sufficient && evidence.length === 0) {
    return failure("NO_EVIDENCE", "a conclusion needs evidence", "cite lines, or say that the log does not answer it");
  }
  const said = sufficient || conclusion.startsWith(INSUFFICIENT) ? conclusion : `${INSUFFICIENT}: ${conclusion}`;
  const report = [
    `Conclusion: ${said}${cites.length > 0 ? ` (${cites.join(", ")})` : ""}`,
    ...section("Evidence:", evidence.map(quoted)),
    ...section("Recommendations:", recommendations),
    ...section("Open:", open),
  ].join("\n");
  return {
    status: "success",
    output: { report },
    newMemories: [{ type: "task_result", text: said, priority: 3 }],
    metadata: { evidence: evidence.length, recommendations: recommendations.length },
  };
}

function quoted(evidence: string): string {
  const [, sign = "", quote = "", meaning] = EVIDENCE.exec(evidence) ?? [];
  return `${sign}: "${unquoted(quote)}"${meaning === undefined ? "" : ` - ${meaning}`}`;
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length > 0 ? [title, ...lines.map((line, index) => `${index + 1}. ${line}`)] : [];
}
