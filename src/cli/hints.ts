import { shellWord, type Terminal } from "./terminal.ts";

/** The options of a command that the next one needs too. */
export interface SameTask {
  readonly db?: string;
  readonly graph?: string;
}

/** The command that goes on with a task, to be copied into a shell. */
export function howToResume(terminal: Terminal, taskId: string, options: SameTask, asks: boolean): string {
  const words = ["npx statecard resume"];
  // An id that looks like an option has to stand behind a double dash.
  const dashed = taskId.startsWith("-");
  if (!dashed) words.push(shellWord(taskId));
  if (options.db !== undefined) words.push("--db", shellWord(options.db));
  if (options.graph !== undefined) words.push("--graph", shellWord(options.graph));
  if (asks) words.push(`--answer "${terminal.marks.more}"`);
  if (dashed) words.push("--", shellWord(taskId));
  return words.join(" ");
}
