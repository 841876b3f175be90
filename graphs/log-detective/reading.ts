import type { Prompt } from "../offline-rules.ts";
import type { Subtask } from "./subtasks.ts";

// What a prompt of this example says, beyond what all prompts have. Rules, not intelligence.

/** A line, a reading or a known issue, by its sign. */
export interface Source {
  readonly sign: string;
  readonly text: string;
}

/** A known issue as the state shows it. */
export interface Issue {
  readonly sign: string;
  readonly component: string;
  readonly shows: readonly string[];
  readonly cause: string;
  readonly signs: readonly string[];
  readonly advice: readonly string[];
  readonly notes: readonly string[];
  readonly isRuledOut: boolean;
}

/** What a reading came to. */
export interface Reading extends Source {
  readonly filter: string;
  readonly matched: number;
  readonly of: number;
}

/** A field as the prompt shows it: in the state, or among what changes most, which stands last. */
function fieldIn(text: string, name: string): string {
  const blocks = text.match(/<(state|now)\b[^>]*>\n[\s\S]*?\n<\/\1>/g) ?? [];
  const field = new RegExp(`^${name}: ?(.*(?:\\n {1,3}.*)*)`, "m");
  return blocks.map((block) => field.exec(block)?.[1]).findLast((shown) => shown !== undefined) ?? "";
}

const TEXT = /"(?:[^"\\]|\\.)*"|[^\s,[\]"][^,[\]"]*/g;

/** A list of texts that the state shows. */
export function textsIn(text: string, name: string): readonly string[] {
  const found = fieldIn(text, name).match(TEXT) ?? [];
  return found.filter((one) => one !== "-").map((one) => bare(one));
}

function bare(shown: string): string {
  if (!shown.startsWith('"')) return shown;
  return (JSON.parse(shown) as string).replace(/&lt;(?=\s*\/?\s*[a-z])/gi, "<");
}

function sourcesIn(text: string, name: string): readonly Source[] {
  return textsIn(text, name).flatMap((one) => {
    const [, sign, rest] = /^(\S+) (.*)$/s.exec(one) ?? [];
    return sign === undefined || rest === undefined ? [] : [{ sign, text: rest }];
  });
}

/** The lines of the log that the state shows, in their order. */
export function linesIn({ text }: Prompt): readonly Source[] {
  return sourcesIn(text, "lines").toSorted((a, b) => Number(a.sign.slice(1)) - Number(b.sign.slice(1)));
}

/** The readings that the state shows. */
export function readingsIn({ text }: Prompt): readonly Reading[] {
  return sourcesIn(text, "readings").flatMap((source) => {
    const [, filter, matched, of] = /^(.*?): (\d+) of (\d+) lines match/.exec(source.text) ?? [];
    return filter === undefined ? [] : [{ ...source, filter, matched: Number(matched), of: Number(of) }];
  });
}

/** The known issues that the state shows, the likeliest first. */
export function issuesIn({ text }: Prompt): readonly Issue[] {
  return sourcesIn(text, "knowledge").map(({ sign, text: told }) => {
    const part = (name: string) => new RegExp(`; ${name} ([^;]*)`).exec(told)?.[1] ?? "";
    return {
      sign,
      component: told.split(":", 1)[0] ?? "",
      shows: part("shows").split(" / "),
      cause: part("cause"),
      signs: part("signs").split(" / "),
      advice: part("advice").split(" / "),
      notes: [...told.matchAll(/; note ([^;]*)/g)].map(([, note = ""]) => note),
      isRuledOut: told.endsWith("; ruled out"),
    };
  });
}

/** The questions that the knowledge base was asked. */
export function queriesIn({ text }: Prompt): readonly string[] {
  return textsIn(text, "queries").map((one) => one.replace(/: \d+ found$/, ""));
}

const SUBTASK =
  /(?:^ {1,3}|about: )("(?:[^"\\]|\\.)*"|[^|,{}[\]"\n]+?)(?: \||, priority:) ([123])(?: \||, status:) (open|known|unknown)/gm;

/** The subtasks that the state shows. */
export function subtasksIn({ text }: Prompt): readonly Subtask[] {
  return [...fieldIn(text, "subtasks").matchAll(SUBTASK)].map(([, about = "", priority, status]) => ({
    about: bare(about),
    priority: Number(priority),
    status: status as Subtask["status"],
  }));
}

/** Whether the limit of rounds leaves no more calls. */
export function isClosing({ text }: Prompt): boolean {
  return text.includes("rounds is reached; no more calls");
}

/** How many snapshots the state shows. */
export function snapshotsIn({ text }: Prompt): number {
  return (fieldIn(text, "snapshots").match(/\bfacts\b/g) ?? []).length;
}
