import { addReview, type ReviewVerdict } from "../batch/review.ts";
import { readRow, type Row } from "../batch/rows.ts";
import { describeTask } from "../compile/describe.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { openBatch } from "./batch-file.ts";
import { storeForReading } from "./database.ts";
import { EXIT, usage } from "./exit.ts";
import { loadGraph } from "./graphs.ts";
import type { CommonOptions } from "./options.ts";
import { whoAnswers } from "./person.ts";
import { cut, detectTerminal, printable, shellWord } from "./terminal.ts";

export interface ReviewCommandOptions extends CommonOptions {
  readonly approve?: readonly string[];
  readonly reject?: readonly string[];
  readonly reason?: string;
  readonly as?: string;
}

const EVERY = "all";

/** `statecard review`: the results of a batch that wait for a person, and what that person says. */
export async function reviewCommand(file: string, options: ReviewCommandOptions): Promise<number> {
  const { approve = [], reject = [], reason } = options;
  if (options.graph === undefined) throw usage("name the graph that the tasks are for, with --graph");
  if (reject.length > 0 && !reason?.trim())
    throw usage("--reject needs --reason: whoever reads the report wants to know");
  const both = approve.find((id) => reject.includes(id));
  if (both !== undefined) throw usage(`"${printable(both)}" is both approved and rejected`);
  const batch = openBatch(file);
  const store = storeForReading(options.db);
  const graph = await loadGraph(options.graph, store);
  const { name } = graph.runtime.workflow;
  const readRows = () =>
    Promise.all(
      batch.lines.map((line) =>
        readRow(graph, { line, taskId: batch.taskId(name, line), policy: null, refused: null, maxAttempts: null }),
      ),
    );
  const rows = await readRows();
  if (approve.length + reject.length > 0) {
    const who = await whoAnswers(options.as, store);
    const chosen = [
      ...chosenBy(rows, approve).map((row) => ({ row, status: "approved" as const })),
      ...chosenBy(rows, reject).map((row) => ({ row, status: "rejected" as const })),
    ];
    for (const { row, status } of chosen)
      await say(store, row, status, who, status === "rejected" ? (reason ?? "") : "");
  } else if (options.as !== undefined) {
    throw usage("--as names who decides; give --approve or --reject with it");
  }
  return print(file, await readRows(), store, options);
}

/** @throws USAGE for an id whose result is not there to be reviewed. */
function chosenBy(rows: readonly Row[], ids: readonly string[]): readonly Row[] {
  const open = rows.filter(({ review }) => review !== null);
  return ids.flatMap((id) => {
    if (id === EVERY) return open.filter(({ status }) => status === "reviewing");
    const row = open.find((each) => each.id === id || each.taskId === id);
    if (row) return [row];
    const ready = open.map((each) => printable(each.id)).join(", ") || "none";
    throw usage(`"${printable(id)}" has no result to review; there are: ${ready}`);
  });
}

async function say(store: SqlStore, row: Row, status: ReviewVerdict, who: string, reason: string): Promise<void> {
  await addReview(store, await describeTask(store, row.taskId), { status, who, reason });
}

async function print(
  file: string,
  rows: readonly Row[],
  store: SqlStore,
  options: ReviewCommandOptions,
): Promise<number> {
  const reviewed = rows.filter(({ review }) => review !== null);
  const isOpen = reviewed.some(({ status }) => status === "reviewing");
  const results = await Promise.all(reviewed.map(async ({ taskId }) => (await describeTask(store, taskId)).state));
  if (options.json) {
    const json = reviewed.map(({ id, taskId, status, review }, index) => ({
      id,
      taskId,
      status,
      review,
      result: results[index],
    }));
    process.stdout.write(`${JSON.stringify(json, null, 2)}\n`);
    return isOpen ? EXIT.waiting : EXIT.ok;
  }
  const terminal = detectTerminal();
  const lines = reviewed.flatMap(({ id, status, review }, index) => {
    const fields = Object.entries(results[index] ?? {}).filter(([, value]) => value !== null);
    const by = review?.who ? ` by ${printable(review.who)}${review.reason && `: ${printable(review.reason)}`}` : "";
    return [
      `${printable(id)}  ${status === "completed" ? "approved" : status}${by}`,
      ...(status === "reviewing" ? fields.map(([name, value]) => fieldLine(terminal, name, value)) : []),
    ];
  });
  const same = [
    shellWord(file),
    "--graph",
    shellWord(options.graph ?? ""),
    ...(options.db ? ["--db", shellWord(options.db)] : []),
  ];
  const hint = isOpen
    ? `Approve with:  npx statecard review ${same.join(" ")} --approve ID (or all)`
    : `Publish with:  npx statecard batch ${same.join(" ")} --out results.json`;
  const text = lines.length > 0 ? [...lines, hint].join("\n") : "No result waits for a review.";
  process.stdout.write(`${text}\n`);
  return isOpen ? EXIT.waiting : EXIT.ok;
}

function fieldLine(terminal: ReturnType<typeof detectTerminal>, name: string, value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return `  ${name}: ${cut(terminal, printable(text), 160)}`;
}
