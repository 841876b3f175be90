import { posix } from "node:path";
import { asWritten, type Prompt } from "../offline-rules.ts";

// What a prompt of this example says, beyond what all prompts have. Rules, not intelligence.

/** What somebody wants moved, as far as a message says it. */
export function wishIn(text: string): Readonly<Record<"functionName" | "source" | "target", string | undefined>> {
  const [, source] = /\b(?:from|out of|in)\s+[`"']?([\w./-]+\.[cm]?[jt]s)\b/i.exec(text) ?? [];
  const [, target] = /\b(?:to|into)\s+(?:a new module\s+)?[`"']?([\w./-]+\.[cm]?[jt]s)\b/i.exec(text) ?? [];
  const [, functionName] = /\bmove\s+(?:the\s+)?(?:function\s+)?[`"']?([A-Za-z_$][\w$]*)/i.exec(text) ?? [];
  return { functionName, source: plain(source), target: plain(target) };
}

function plain(path: string | undefined): string | undefined {
  return path && posix.normalize(path);
}

/** A call's value as the latest observation shows it. */
interface Shown {
  readonly tool: string;
  readonly status: string;
  readonly text: string;
}

/** What the latest calls came to, with values of several lines. */
export function shownIn({ latest, results }: Prompt): readonly Shown[] {
  const [only] = results;
  if (latest.kind === "result" && only) return [{ tool: only.tool, status: "ok", text: latest.text.trimEnd() }];
  if (latest.kind !== "results") return [];
  const heads = [...latest.text.matchAll(/^\d+\.\d+ (\w+) (\w+)\b(?::\s)?/gm)];
  return heads.map((head, index) => ({
    tool: head[1] ?? "",
    status: head[2] ?? "",
    text: latest.text.slice(head.index + head[0].length, heads[index + 1]?.index).trimEnd(),
  }));
}

/** The last error that the state shows. */
export function errorIn({ text }: Prompt): string {
  const shown = [...text.matchAll(/lastError: \{message: ("(?:[^"\\]|\\.)*"|[^,]*), action:/g)].at(-1)?.[1];
  if (shown === undefined) return "something is not as it should be";
  return asWritten(shown.startsWith('"') ? (JSON.parse(shown) as string) : shown);
}

/** The paths of the plan's steps that were given up. */
export function failedIn({ text }: Prompt): readonly string[] {
  const plan = text.slice(text.lastIndexOf("\nplan:"));
  const rows = plan.matchAll(
    /^\s*(\S+) \| (?:create|change) \| failed \||\{path: (\S+), action: \w+, status: failed,/gm,
  );
  return [...new Set([...rows].map(([, row, alone]) => row ?? alone ?? ""))];
}

/** A whole file of the project. */
export interface File {
  readonly path: string;
  readonly content: string;
}

/** A file as readFile has shown it; null where only a part of it was shown. */
export function fileIn({ text }: Shown): File | null {
  const path = lineOf(text, "path");
  const content = lineOf(text, "text");
  return path === null || content === null || lineOf(text, "goOnFrom") !== null ? null : { path, content };
}

function lineOf(text: string, name: string): string | null {
  const value = new RegExp(`^${name}: (.*)$`, "m").exec(text)?.[1];
  if (value === undefined) return null;
  if (!value.startsWith('"')) return asWritten(value);
  try {
    return asWritten(JSON.parse(value) as string);
  } catch {
    // A text that the prompt has cut.
    return null;
  }
}

/** Whether a prompt shows a part only of what a call has brought. */
export function isCut({ text }: Shown): boolean {
  return /\b(?:leftOut|goOnFrom|searchedOnly): \d|… \d+ characters left out|^preview: /m.test(text);
}

/** A line that a search has found. */
export interface Found {
  readonly path: string;
  readonly text: string;
}

// Several places are a table, a single one is shown on one line.
const ROW = /^\s*(\S+) \| \d+ \| (.*)$/gm;
const ALONE = /\{path: (\S+), line: \d+, text: (.*)\}\]$/m;

/** What a search has found. */
export function foundIn({ text }: Shown): readonly Found[] {
  const rows = [...text.matchAll(ROW)].map(([, path = "", line = ""]) => ({ path, text: line }));
  const [, path, line = ""] = ALONE.exec(text) ?? [];
  return (path === undefined ? rows : [...rows, { path, text: line }]).map((found) => ({
    path: found.path,
    text: found.text.startsWith('"') ? (JSON.parse(found.text) as string) : found.text,
  }));
}

/** The paths that listFiles has shown. */
export function pathsIn({ text }: Shown): readonly string[] {
  return [...(/files: \[(.*)\]/.exec(text)?.[1] ?? "").matchAll(/[^\s,[\]"]+/g)].map(([path]) => path);
}
