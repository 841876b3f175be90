import { linesOf, quoteOf, type Finding, type Reading } from "./kept.ts";

interface Output {
  readonly patch: { readonly findings?: readonly Finding[] | null };
}
type Verdict =
  | { readonly mend: { readonly patch: { readonly findings: Finding[] } } }
  | { readonly sendBack: string }
  | null;

/**
 * The output guard for findings: each names the file that is being read, a line of the piece that was read, and
 * quotes that line to the letter. What does not goes back to the model once; what is no better then is left out.
 */
export function lineGuard({ patch }: Output, reading: Reading, wasSentBack: boolean): Verdict {
  const findings = patch.findings ?? [];
  const wrong = findings.filter((finding) => !holds(finding, reading));
  if (wrong.length === 0) return null;
  if (wasSentBack) return { mend: { patch: { findings: findings.filter((finding) => holds(finding, reading)) } } };
  const told = wrong.slice(0, 5).map(({ file, line, quote }) => `${file}:${line} is not ${JSON.stringify(quote)}`);
  return { sendBack: `not in what was read: ${told.join("; ")}` };
}

/** Whether a finding's line is there and reads as it is quoted. Pure. */
function holds({ file, line, quote }: Finding, reading: Reading): boolean {
  if (file !== reading.file) return false;
  const text = linesOf(reading.source ?? "")[line - (reading.from ?? 1)];
  return text !== undefined && quote !== "" && quoteOf(text) === quote;
}
