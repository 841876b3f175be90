import type { Finding, ReviewFile } from "./kept.ts";

interface Reviewed {
  readonly directory: string | null;
  readonly focus: string | null;
  readonly files: readonly ReviewFile[] | null;
  readonly findings: readonly Finding[] | null;
}

const MAX_LISTED = 100;
const READING = ["file", "from", "source", "goOnFrom"] as const;

/** Writes the report from what was found. Nothing is in it that is not in the state. */
export function report(state: Reviewed) {
  const files = state.files ?? [];
  const findings = state.findings ?? [];
  const unread = files.filter(({ status }) => status === "unreadable");
  const head = `${state.directory}, ${state.focus}: ${plural(findings.length, "finding")} in ${plural(files.length, "source file")}`;
  const lines = findings
    .slice(0, MAX_LISTED)
    .map(({ file, line, rule, why, quote }) => `${file}:${line}  ${rule}: ${why}\n    ${quote}`);
  const more = findings.length - lines.length;
  const text = [
    head,
    ...lines,
    ...(more > 0 ? [`and ${more} more, in the field findings`] : []),
    ...(unread.length > 0 ? [`not read: ${unread.map(({ path }) => path).join(", ")}`] : []),
    ...(files.length === 200 ? ["there may be more files: only 200 are listed; review its folders one by one"] : []),
  ].join("\n");
  return {
    reply: head,
    patch: { report: text.slice(0, 30_000) },
    // What was looked at last is no part of the result.
    clear: READING,
    next: "done" as const,
  };
}

function plural(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
