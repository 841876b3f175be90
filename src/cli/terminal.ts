import { styleText } from "node:util";
import type { TaskDescription } from "../compile/describe.ts";
import type { TurnTokens } from "../compile/turns.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { moves } from "../workflow/next-step.ts";

/** What a terminal can show; plain ASCII without colour where it can't do better or is none. */
export interface Terminal {
  readonly colour: boolean;
  readonly marks: Marks;
}

interface Marks {
  readonly done: string;
  readonly here: string;
  readonly ahead: string;
  readonly arrow: string;
  readonly said: string;
  readonly prompt: string;
  readonly dot: string;
  readonly more: string;
}

const UNICODE: Marks = {
  done: "✔ ",
  here: "● ",
  ahead: "○ ",
  arrow: " → ",
  said: "◆ ",
  prompt: "› ",
  dot: "·",
  more: "…",
};
const ASCII: Marks = {
  done: "[x] ",
  here: "[*] ",
  ahead: "[ ] ",
  arrow: " -> ",
  said: "> ",
  prompt: "> ",
  dot: "-",
  more: "...",
};

/** Looks at the standard output and the environment. */
export function detectTerminal(output: NodeJS.WriteStream = process.stdout, environment = process.env): Terminal {
  const isTerminal = output.isTTY && environment.TERM !== "dumb";
  const locale = environment.LC_ALL || environment.LC_CTYPE || environment.LANG || "";
  const unicode = isTerminal && (/utf-?8/i.test(locale) || process.platform === "win32");
  return { colour: isTerminal && !environment.NO_COLOR, marks: unicode ? UNICODE : ASCII };
}

function paint(terminal: Terminal, style: "green" | "cyan" | "dim" | "bold" | "yellow" | "red", text: string): string {
  return terminal.colour ? styleText(style, text) : text;
}

/** One line: every step with a mark for done, current, or to come. */
export function progressLine(
  terminal: Terminal,
  workflow: AnyWorkflow,
  task: Pick<TaskDescription, "step" | "completedSteps" | "status">,
): string {
  const { marks } = terminal;
  return Object.keys(workflow.steps)
    .map((name) => {
      if (name === task.step) return paint(terminal, "cyan", marks.here + name);
      return task.completedSteps.includes(name)
        ? paint(terminal, "green", marks.done + name)
        : paint(terminal, "dim", marks.ahead + name);
    })
    .join(marks.arrow);
}

/** The fields with their values; what has changed since `before`, and what is needed to go on. */
export function fieldTable(
  terminal: Terminal,
  workflow: AnyWorkflow,
  task: Pick<TaskDescription, "step" | "state">,
  before: Readonly<Record<string, unknown>>,
): string {
  const needed = new Map<string, string>();
  for (const { to, closed } of moves(workflow, task.step, task.state)) {
    for (const field of closed?.fields ?? []) needed.set(field, to);
  }
  const names = Object.keys(workflow.state).filter((name) => hasValue(task.state[name]) || needed.has(name));
  const width = Math.max(0, ...names.map((name) => name.length));
  return names
    .map((name) => {
      const value = task.state[name];
      const text = hasValue(value) ? printable(typeof value === "string" ? value : JSON.stringify(value)) : "-";
      const changed = JSON.stringify(value ?? null) !== JSON.stringify(before[name] ?? null);
      const note = hasValue(value)
        ? changed
          ? paint(terminal, "green", "new")
          : ""
        : paint(terminal, "yellow", `needed before ${needed.get(name)}`);
      return `  ${name.padEnd(width)}  ${padTo(cut(terminal, text, 70), 24)}  ${note}`.trimEnd();
    })
    .join("\n");
}

/** Padded to columns of a terminal, where Chinese, Japanese and Korean characters and full-width forms take two. */
function padTo(text: string, columns: number): string {
  const wide = text.match(
    /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff01-\uff60]/gu,
  );
  return text.padEnd(columns - (wide?.length ?? 0));
}

function hasValue(value: unknown): boolean {
  return value !== null && value !== undefined;
}

// oxlint-disable-next-line no-control-regex
const STEERING = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]+/g;

/** Text from outside without what would steer a terminal; it may have several lines. */
export function printableLines(text: string): string {
  return text.replaceAll(STEERING, " ");
}

/** Text from outside on one line, without what would steer a terminal. */
export function printable(text: string): string {
  return printableLines(text).replaceAll("\n", " ");
}

/** What the model saw in the latest turn, beside the whole conversation. */
export function tokenLine(terminal: Terminal, turns: readonly TurnTokens[]): string {
  const last = turns.at(-1);
  if (!last) return "";
  const text = `model saw ${count(last.seen)} tokens ${terminal.marks.dot} the whole conversation would be ${count(last.wholeConversation)}`;
  return paint(terminal, "dim", `  ${text}`);
}

/** A text cut to a width, with a mark where something is left out. */
export function cut(terminal: Terminal, text: string, width: number): string {
  const { more } = terminal.marks;
  return text.length <= width ? text : `${text.slice(0, width - more.length)}${more}`;
}

/** A number with thousands separated. */
export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** How long ago, in the largest unit that fits. */
export function ago(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} days`;
}

/** How long something lasts, rounded to the largest unit that fits: what ends in 23 h 59 min ends in 24 h. */
export function lasting(milliseconds: number): string {
  const minutes = milliseconds / 60_000;
  if (minutes < 1) return `${Math.max(1, Math.round(minutes * 60))} s`;
  if (minutes < 90) return `${Math.round(minutes)} min`;
  if (minutes < 2880) return `${Math.round(minutes / 60)} h`;
  return `${Math.round(minutes / 1440)} days`;
}

/** Text as one argument of a shell command. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Highlights of an error and of a hint, for people. */
export function emphasise(terminal: Terminal, style: "red" | "bold" | "dim", text: string): string {
  return paint(terminal, style, text);
}
