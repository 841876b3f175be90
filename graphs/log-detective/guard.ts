import { checkReport, sourcesOf, withMarks, withRightLines, type Evidence } from "./evidence.ts";

interface Output {
  readonly reply: string | null;
  readonly patch: { readonly report?: string | null };
}
type Verdict =
  | { readonly mend: { readonly reply?: string; readonly patch?: { readonly report: string } } }
  | { readonly sendBack: string }
  | null;

const TOLD = 200;

/**
 * The output guard for reports. What was read holds up every line: it passes. Only line numbers are wrong: they
 * are put right. Anything else goes back to the model once, with each line and the reason; if it is no better
 * then, those lines are marked. What the user is told is what was checked.
 */
export function evidenceGuard({ reply, patch }: Output, state: Evidence, wasSentBack: boolean): Verdict {
  const report = patch.report ?? reply;
  if (report === null || report === undefined) return null;
  const sources = sourcesOf(state);
  const told = (checked: string): Verdict => {
    const isSame = checked === report && (reply === null || reply === report);
    if (isSame) return null;
    return {
      mend: { ...(reply === null ? {} : { reply: checked }), ...(patch.report ? { patch: { report: checked } } : {}) },
    };
  };
  const mended = withRightLines(report, sources);
  const left = checkReport(mended, sources);
  if (left.length === 0) return told(mended);
  if (wasSentBack) return told(withMarks(mended, sources));
  const reasons = left.map(({ line, reason }) => `"${line.slice(0, TOLD)}": ${reason}`);
  return { sendBack: `what was read does not hold up: ${reasons.join("; ")}` };
}
