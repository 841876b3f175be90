import { describeRow, describeTask, type ListedTask, type TaskDescription } from "../compile/describe.ts";
import { shownEvent, shownRow, shownTask } from "../compile/iso-times.ts";
import type { TaskEvent, TaskRow } from "../compile/store.ts";
import { isPlainObject } from "../internal/json.ts";
import { databaseFile } from "../storage/sqlite/sqlite.ts";
import { TASK_STATUSES } from "../state/execution.ts";
import { storeForReading } from "./database.ts";
import { usage } from "./exit.ts";
import { withoutPassword } from "./hints.ts";
import { print } from "./print.ts";
import { sameTask, wholeNumber, type CommonOptions } from "./options.ts";
import { ago, count, cut, detectTerminal, emphasise, printable, type Terminal } from "./terminal.ts";
import { expiry, waitingLines, whoIsAsked } from "./waiting.ts";

/** `statecard tasks` shows so many unless told otherwise, and so many at most. */
const LISTED = 100;
const MOST_LISTED = 100_000;
/** So many are looked at once for those of a status. */
const PAGE = 500;

/** `statecard show`: where a task stands. Reads the store alone, so it works without the task's graph. */
export async function showCommand(taskId: string, options: CommonOptions): Promise<number> {
  const task = await describeTask(storeForReading(options.db), taskId);
  return print(options, shownTask(task), showText(task, options));
}

function showText(task: TaskDescription, options: CommonOptions): string {
  const terminal = detectTerminal();
  const { usage } = task;
  const { dot } = terminal.marks;
  const width = Math.max(0, ...Object.keys(task.state).map((name) => name.length));
  const fields = Object.entries(task.state).map(([name, value]) => {
    const text = value === null ? "-" : typeof value === "string" ? value : JSON.stringify(value);
    return `  ${name.padEnd(width)}  ${cut(terminal, printable(text), 200)}`;
  });
  const hints = waitingLines(terminal, task.taskId, sameTask(options), task.waiting ?? []);
  const error = task.lastError
    ? [emphasise(terminal, "red", `${task.lastError.code}: ${printable(task.lastError.message)}`)]
    : [];
  return [
    `${printable(task.taskId)} ${dot} ${task.workflow} v${task.version} ${dot} ${task.status} at ${task.step}`,
    `  completed steps: ${task.completedSteps.join(", ") || "none"} ${dot} revision ${task.revision} ${dot} retries ${task.retryCount}`,
    ...fields,
    ...error,
    ...hints,
    `${usage.calls} model ${usage.calls === 1 ? "call" : "calls"}, ${count(usage.inputTokens)} tokens in (${count(usage.cachedTokens)} cached), ${count(usage.outputTokens)} out`,
  ].join("\n");
}

/** `statecard history`: what happened to a task, line by line. */
export async function historyCommand(taskId: string, options: CommonOptions): Promise<number> {
  const store = storeForReading(options.db);
  await describeTask(store, taskId);
  const events = await store.events(taskId);
  const terminal = detectTerminal();
  const lines = events.map((event) => eventLine(terminal, event));
  return print(options, { taskId, events: events.map(shownEvent) }, lines);
}

function eventLine(terminal: Terminal, event: TaskEvent): string {
  const revision = event.revision >= 0 ? String(event.revision) : "";
  return `${new Date(event.at).toISOString().slice(0, 19).replace("T", " ")}  ${revision.padStart(4)}  ${event.kind.padEnd(9)}  ${cut(terminal, printable(tell(event)), 160)}`;
}

function tell({ kind, data }: TaskEvent): string {
  const decision = (data.decision ?? {}) as Readonly<Record<string, unknown>>;
  switch (kind) {
    case "started": {
      // Tasks of the first format have the input's fields beside the others.
      const { message, ...fields } = isPlainObject(data.input) ? data.input : { message: data.message };
      const given = Object.entries(fields).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
      return [typeof message === "string" ? message : "without a message", ...given].join("; ");
    }
    case "decision": {
      const parts = Object.entries(decision)
        .filter(([key, value]) => key !== "because" && JSON.stringify(value) !== "{}")
        .map(([key, value]) => `${key} ${typeof value === "string" ? value : JSON.stringify(value)}`);
      const because = typeof decision.because === "string" ? ` (${decision.because})` : "";
      return `${String(data.step)}: ${parts.join("; ") || "nothing"}${because}`;
    }
    case "result":
      return `${String(data.step)}: ${JSON.stringify(data.observation ?? null)}`;
    case "asked": {
      const request = isPlainObject(data.request) ? data.request : {};
      return `${String(request.id)}: ${String(request.question)}`;
    }
    case "withdrawn":
      return `${String(data.id)} is not asked any more`;
    case "answered":
      return tellAnswer(data);
    case "consent":
      return tellConsent(data);
    case "consented":
      return `the answer to ${String(data.id)} holds for all tasks of this workflow`;
    case "refused":
      return `${String(data.step)}: ${String(data.code)}: ${String(data.reason)}${typeof data.agent === "string" ? ` (proposed by ${data.agent})` : ""}`;
    case "proposed":
      return `${String(data.step)}: the next decision is ${String(data.agent)}'s`;
    case "error":
      return `${String(data.step)}: ${String(data.code)}: ${String(data.message)}`;
    case "migrated": {
      const done = Array.isArray(data.done) ? data.done.map(String) : [];
      return [`version ${String(data.from)} to ${String(data.to)}`, ...done].join("; ");
    }
    default:
      return Object.entries(data)
        .filter(([, value]) => typeof value !== "object")
        .map(([key, value]) => `${key} ${String(value)}`)
        .join(", ");
  }
}

function tellConsent({ step, decision }: TaskEvent["data"]): string {
  if (!isPlainObject(decision)) return `${String(step)}: before its decision a person is asked what may be sent`;
  const { destination, allowed, withheld, by } = decision;
  const list = (kinds: unknown) => (Array.isArray(kinds) ? kinds.map(String).join(", ") : "") || "nothing";
  const who = typeof by === "string" ? ` (decided by ${by})` : "";
  return `to ${String(destination)} may go: ${list(allowed)}; withheld: ${list(withheld)}${who}`;
}

function tellAnswer({ id, who, answer, counts, reason }: TaskEvent["data"]): string {
  const said = isPlainObject(answer) ? answer : { type: "text", text: answer };
  const person = typeof who === "string" ? who : "somebody who was not signed in";
  const why = typeof reason === "string" ? ` (${reason})` : "";
  switch (said.type) {
    case "approve":
      return `${person} approved ${String(id)}${counts === undefined ? "" : ", one of several who have to"}${why}`;
    case "reject":
      return `${person} rejected ${String(id)}: ${String(said.reason) || "no reason given"}${why}`;
    case "edit":
      return `${person} changed ${String(id)} to ${JSON.stringify(said.args)}${why}`;
    default:
      return `${person} answered ${String(id)}: ${typeof said.text === "string" ? said.text : ""}${why}`;
  }
}

export interface TasksCommandOptions extends CommonOptions {
  readonly limit?: string;
  readonly workflow?: string;
  readonly status?: string;
}

/** `statecard tasks`: the tasks of the database, the latest changed first. */
export async function tasksCommand(options: TasksCommandOptions): Promise<number> {
  const { workflow, status } = options;
  const limit = wholeNumber("--limit", options.limit, 1, MOST_LISTED) ?? LISTED;
  if (status !== undefined && !TASK_STATUSES.some((known) => known === status))
    throw usage(`--status: there is no "${status}"; there are: ${TASK_STATUSES.join(", ")}`);
  const store = storeForReading(options.db);
  const isFiltered = workflow !== undefined || status !== undefined;
  const found: ListedTask[] = [];
  const page = status === undefined ? limit + 1 : PAGE;
  for (let after: TaskRow | undefined; found.length <= limit;) {
    const stored = await store.tasks({
      limit: page,
      ...(workflow === undefined ? {} : { workflow }),
      ...(after ? { after } : {}),
    });
    const listed = await Promise.all(stored.map((row) => describeRow(store, row)));
    found.push(...listed.filter((row) => status === undefined || row.status === status));
    after = stored.at(-1);
    if (stored.length < page) break;
  }
  const more = found.length > limit;
  const rows = found.slice(0, limit);
  const where = withoutPassword(databaseFile(options.db));
  const none = isFiltered
    ? `No such tasks in ${where}.`
    : `No tasks yet in ${where}. Start one with: npx statecard run GRAPH`;
  const hint = `There are more; show them with --limit ${Math.min(limit * 10, MOST_LISTED)}.`;
  const lines = rows.length === 0 ? [none] : taskLines(rows);
  return print(
    options,
    { tasks: rows.map(shownRow), ...(more ? { more } : {}) },
    more && limit < MOST_LISTED ? [...lines, hint] : lines,
  );
}

function taskLines(rows: readonly ListedTask[]): readonly string[] {
  const now = Date.now();
  const terminal = detectTerminal();
  const cells = rows.map(({ taskId, workflow, version, status, step, updatedAt, waiting }): readonly string[] => {
    const [request] = waiting;
    const others = waiting.length > 1 ? ` (and ${waiting.length - 1} more)` : "";
    const stands = request
      ? `waiting for ${cut(terminal, whoIsAsked(request), 60)}: ${cut(terminal, printable(request.question), 60)}${others}`
      : `${status} at ${step}`;
    return [
      printable(cut(terminal, taskId, 60)),
      `${workflow} v${version}`,
      stands,
      ago(now - updatedAt),
      request ? expiry(request, now) : "",
    ];
  });
  const widths = [0, 1, 2, 3].map((column) => Math.max(...cells.map((row) => (row[column] ?? "").length)));
  return cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
