import type { TaskRow } from "../compile/store.ts";
import { isWorkflowError } from "../errors.ts";
import type { StoredVerdict } from "../storage/migrate-stored.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import type { Quarantine } from "../workflow/migrate.ts";
import { storeForReading } from "./database.ts";
import { EXIT, usage } from "./exit.ts";
import { LineInput } from "./line-input.ts";
import {
  hasEnded,
  loadRelease,
  oneLine,
  releaseOf,
  workflowOf,
  type BrokenGraph,
  type Release,
} from "./migrate-graphs.ts";
import type { CommonOptions } from "./options.ts";
import { print } from "./print.ts";
import { count, cut, detectTerminal, emphasise, printable, type Terminal } from "./terminal.ts";

/** What may become of a task whose workflow was changed without a new version. */
const CHOICES = ["keep", "empty", "delete"] as const;
type Choice = (typeof CHOICES)[number];

export interface MigrateOptions extends CommonOptions {
  readonly dryRun?: boolean;
  readonly unfit?: string;
}

/** What the present release means for one task, or what was done. */
interface Line {
  readonly taskId: string;
  readonly workflow: string;
  readonly from: number;
  /** Null where the workflow is not known here. */
  readonly to: number | null;
  readonly verdict:
    | "fine"
    | "migrates"
    | "migrated"
    | "quarantined"
    | "unknown workflow"
    | "not checked"
    | "busy"
    | "deleted";
  readonly reason?: string;
  readonly done?: readonly string[];
}

/**
 * `statecard migrate`: says what the present release means for every stored task, and writes the declared
 * migrations down. What is quarantined stays as it is stored.
 */
export async function migrateCommand(options: MigrateOptions): Promise<number> {
  const given = checkChoice(options.unfit);
  const store = storeForReading(options.db);
  const all = await store.tasks();
  const release = await loadRelease(store, all, options.graph);
  const { broken } = release;
  const rows = options.graph === undefined ? all : all.filter((row) => workflowOf(release, row).kind === "workflow");
  const ask = options.dryRun || options.json || given !== undefined ? null : askAtTerminal();
  const lines: Line[] = [];
  try {
    for (const row of rows) {
      const context = { store, release, isDry: options.dryRun === true };
      lines.push(await migrateOne(context, row, given ?? ask ?? "keep"));
    }
  } finally {
    ask?.close();
  }
  const json = { tasks: lines, ...(broken.length > 0 ? { broken } : {}) };
  print(options, json, [...table(lines), ...broken.map(toldBroken)]);
  return broken.length > 0 || lines.some(({ verdict }) => verdict === "quarantined") ? EXIT.refused : EXIT.ok;
}

/**
 * While developing, a schema changes without a new version. Before such a task is run, a person at the
 * terminal is asked what to do with it; without a terminal it stays in quarantine.
 *
 * @returns false where the task is gone.
 */
export async function settleChange(store: SqlStore, workflow: AnyWorkflow, taskId: string): Promise<boolean> {
  const verdict = await store.verdict(taskId);
  if (verdict?.kind !== "quarantined" || !verdict.sameVersion) return true;
  const ask = askAtTerminal();
  const row = (await store.tasks()).find((task) => task.taskId === taskId);
  if (!ask || !row) return true;
  try {
    const line = await migrateOne({ store, release: releaseOf(workflow), isDry: false }, row, ask);
    return line.verdict !== "deleted";
  } finally {
    ask.close();
  }
}

function checkChoice(given: string | undefined): Choice | undefined {
  if (given === undefined) return undefined;
  const choice = CHOICES.find((each) => each === given);
  if (!choice) throw usage(`--unfit ${printable(given)}: choose one of ${CHOICES.join(", ")}`);
  return choice;
}

interface Context {
  readonly store: SqlStore;
  readonly release: Release;
  readonly isDry: boolean;
}

async function migrateOne(context: Context, row: TaskRow, how: Choice | TerminalChoice): Promise<Line> {
  const { store, release, isDry } = context;
  const { taskId, execution } = row;
  const found = workflowOf(release, row);
  const to = found.kind === "workflow" ? found.workflow.version : null;
  const line = { taskId, workflow: execution.workflow, from: execution.version, to };
  // So it may stay as it is.
  if (hasEnded(execution)) return { ...line, verdict: "fine", reason: "it has ended" };
  if (found.kind === "not loaded") return { ...line, verdict: "not checked", reason: found.reason };
  // The store has one workflow of each name, and another graph may have one of this name.
  if (found.kind === "workflow") store.bind(found.workflow);
  const verdict: StoredVerdict =
    found.kind === "workflow" ? ((await store.verdict(taskId)) ?? { kind: "unknown" }) : { kind: "unknown" };
  if (verdict.kind === "unknown") {
    const reason = "no graph in langgraph.json here has it; name one with --graph";
    return { ...line, verdict: "unknown workflow", reason };
  }
  if (isDry && verdict.kind === "migrated") return { ...line, verdict: "migrates", done: verdict.steps };
  const choice = await chosen(verdict, row, how);
  const quarantined = (found: Quarantine): Line => ({ ...line, verdict: "quarantined", reason: found.reason });
  if (verdict.kind === "quarantined" && (isDry || choice === "keep")) return quarantined(verdict);
  if (isDry) return { ...line, verdict: "fine" };
  try {
    const lease = await store.acquire(taskId);
    try {
      if (choice === "delete") {
        await store.deleteTask(taskId);
        return { ...line, verdict: "deleted" };
      }
      const written = await store.migrate(lease, choice === "empty" ? "empty" : "keep");
      if (written.kind === "quarantined") return quarantined(written);
      return written.kind === "migrated"
        ? { ...line, verdict: "migrated", done: written.steps }
        : { ...line, verdict: "fine" };
    } finally {
      await store.release(lease);
    }
  } catch (error) {
    if (!isWorkflowError(error, "TASK_BUSY")) throw error;
    return { ...line, verdict: "busy", reason: error.message };
  }
}

/** Only a task whose workflow was changed without a new version leaves a choice; a release has to declare. */
async function chosen(verdict: StoredVerdict, row: TaskRow, how: Choice | TerminalChoice): Promise<Choice> {
  if (verdict.kind !== "quarantined" || !verdict.sameVersion) return "keep";
  return typeof how === "string" ? how : how.choose(row, verdict);
}

interface TerminalChoice {
  choose(row: TaskRow, quarantine: Quarantine): Promise<Choice>;
  close(): void;
}

/** Asks a person about each task; null without a terminal. Ctrl-C and the end of the input keep the task. */
function askAtTerminal(): TerminalChoice | null {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return null;
  const terminal = detectTerminal();
  let input: LineInput | null = null;
  return {
    async choose({ taskId }, { reason, unfit }) {
      input ??= new LineInput();
      const empty = unfit.length > 0 ? `, (e)mpty ${unfit.join(", ")}` : "";
      process.stdout.write(`${printable(taskId)}: ${printable(reason)}\n`);
      for (;;) {
        process.stdout.write(
          `${emphasise(terminal, "bold", `(k)eep it in quarantine${empty}, or (d)elete the task?`)}\n`,
        );
        const line = ((await input.next(terminal)) ?? "").trim().toLowerCase();
        if (line === "") return "keep";
        const choice = CHOICES.find((each) => each.startsWith(line));
        if (choice && (choice !== "empty" || empty)) return choice;
      }
    },
    close: () => input?.close(),
  };
}

function table(lines: readonly Line[]): readonly string[] {
  if (lines.length === 0) return ["No tasks."];
  const terminal = detectTerminal();
  const ids = lines.map(({ taskId }) => printable(cut(terminal, taskId, 60)));
  const width = Math.max(...ids.map((id) => id.length));
  const names = Math.max(...lines.map(({ workflow }) => workflow.length));
  const rows = lines.map(
    (line, index) => `${(ids[index] ?? "").padEnd(width)}  ${line.workflow.padEnd(names)}  ${told(terminal, line)}`,
  );
  const verdicts = [...new Set(lines.map(({ verdict }) => verdict))].map(
    (verdict) => `${count(lines.filter((line) => line.verdict === verdict).length)} ${verdict}`,
  );
  return [...rows, `${count(lines.length)} ${lines.length === 1 ? "task" : "tasks"}: ${verdicts.join(", ")}`];
}

/** The fault of a graph, once, whatever number of tasks it has. */
function toldBroken({ graph, reason }: BrokenGraph): string {
  return emphasise(
    detectTerminal(),
    "red",
    `graph ${printable(graph)} cannot be loaded: ${printable(oneLine(reason))}`,
  );
}

function told(terminal: Terminal, { verdict, from, to, reason, done = [] }: Line): string {
  if (verdict === "migrates" || verdict === "migrated") {
    const what = done.length > 0 ? `: ${printable(done.join("; "))}` : "";
    return `${verdict} ${from}${terminal.marks.arrow}${to ?? ""}${what}`;
  }
  const text = `${verdict}${reason === undefined ? "" : `: ${printable(reason)}`}`;
  return verdict === "quarantined" ? emphasise(terminal, "red", text) : text;
}
