import { OfflineRules, type Prompt } from "../offline-rules.ts";
import { detect, FOCUSES, type Focus } from "./detectors.ts";
import { linesOf, quoteOf, type Finding } from "./kept.ts";

/** What one decision can report: answers have an end. */
const MAX_OF_A_PIECE = 40;
const WHICH = "Which directory is to be reviewed?";
const HOW = `With which focus: ${FOCUSES.join(" or ")}?`;

/** One decision of a reviewer that knows a handful of rules, from the prompt alone. */
function decideReview(prompt: Prompt): object {
  switch (prompt.step) {
    case "scoping":
      return scope(prompt);
    case "reviewing":
      return review(prompt);
    default:
      return {};
  }
}

function scope({ state, said, question }: Prompt): object {
  const named = question === WHICH ? said.trim() : /(?:^|\s)((?:[\w.-]+\/)*[\w.-]*\/[\w./-]*)/.exec(said)?.[1];
  const directory = state.directory ?? named;
  const focus = state.focus ?? FOCUSES.find((each) => new RegExp(String.raw`\b${each}\b`, "i").test(said));
  const patch = {
    ...(state.directory === undefined && directory ? { directory } : {}),
    ...(state.focus === undefined && focus ? { focus } : {}),
  };
  if (!directory) return { because: "no directory is named", patch, ask: WHICH };
  if (!focus) return { because: "no focus is named", patch, ask: HOW };
  return { because: "directory and focus are known", patch, next: "listing" };
}

function review(prompt: Prompt): object {
  const { state } = prompt;
  const file = typeof state.file === "string" ? state.file : null;
  const found = file === null ? [] : findingsIn(file, Number(state.from), String(state.source), state.focus as Focus);
  const patch = found.length > 0 ? { patch: { findings: found } } : {};
  const open = openFiles(prompt);
  const read = (path: string, from?: unknown) => [{ tool: "readFile", args: { path, ...(from ? { from } : {}) } }];
  if (file !== null && file === open[0] && state.goOnFrom !== 0) {
    return { because: `${file} goes on`, ...patch, calls: read(file, state.goOnFrom) };
  }
  if (open[0] !== undefined)
    return {
      because: open.length === 1 ? "1 file is open" : `${open.length} files are open`,
      ...patch,
      calls: read(open[0]),
    };
  return { because: "every file is read", ...patch, next: "reporting" };
}

/** The files that the state shows as open: rows of a table, or a single one on its line. */
function openFiles({ text }: Prompt): readonly string[] {
  const rows = text.matchAll(/^ +(.+) \| open$|\{path: (.+), status: open\}/gm);
  return [...rows].map(([, row, single]) => bare(row ?? single ?? ""));
}

function bare(shown: string): string {
  return shown.startsWith('"') ? (JSON.parse(shown) as string) : shown;
}

function findingsIn(file: string, from: number, source: string, focus: Focus): readonly Finding[] {
  const lines = linesOf(source);
  return detect(source, focus)
    .slice(0, MAX_OF_A_PIECE)
    .map(({ rule, why, line }) => ({ file, line: from + line - 1, rule, why, quote: quoteOf(lines[line - 1] ?? "") }));
}

/** The example's own model, for when no key is set. */
export function reviewRules(): OfflineRules {
  return new OfflineRules(decideReview);
}
