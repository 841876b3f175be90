import { isoTime } from "../compile/iso-times.ts";
import { removeEnded } from "../compile/prune.ts";
import { shorten } from "../internal/json.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { namesWithin } from "../workflow/within.ts";
import { storeForReading } from "./database.ts";
import { usage } from "./exit.ts";
import { graphIds, loadGraphs } from "./graphs.ts";
import { wholeNumber, type CommonOptions } from "./options.ts";
import { print } from "./print.ts";
import { count, printable } from "./terminal.ts";

export interface PruneCommandOptions extends CommonOptions {
  readonly days?: string;
  readonly graphs?: string;
  /** Names of workflows as their tasks bear them, for those whose graph is not here. */
  readonly workflow?: readonly string[];
  readonly dryRun?: boolean;
}

export const DAY_MS = 24 * 3_600_000;
export const MOST_DAYS = 36_500;

/** `statecard prune`: removes tasks that ended long ago. */
export async function pruneCommand(options: PruneCommandOptions): Promise<number> {
  const days = wholeNumber("--days", options.days, 0, MOST_DAYS);
  if (days === undefined) throw usage("how long are tasks that have ended kept? statecard prune --days 90");
  if (options.graphs !== undefined && options.workflow !== undefined) {
    throw usage("--graphs and --workflow both say whose tasks are removed; choose one");
  }
  const isDry = options.dryRun === true;
  const store = storeForReading(options.db);
  const stored = await store.workflows();
  const before = Date.now() - days * DAY_MS;
  const workflows = options.workflow
    ? storedWorkflows(options.workflow, stored)
    : namesWithin(
        [...(await loadGraphs(graphIds(options.graphs), store)).values()].map((graph) => graph.runtime.workflow),
      );
  const ended = await removeEnded({ store, workflows, before, isDry });
  const isAll = options.graphs === undefined && options.workflow === undefined;
  const left = isAll ? await endedOf(store, new Set(stored.filter((name) => !workflows.has(name))), before) : undefined;
  await store.close();
  const tasks = `${count(ended)} ${ended === 1 ? "task" : "tasks"} that ended before ${isoTime(before)}`;
  const found = `There ${ended === 1 ? "is" : "are"} ${tasks}; nothing was removed.`;
  const text = isDry ? found : `Removed ${tasks}.`;
  const json = { before: isoTime(before), [isDry ? "ended" : "removed"]: ended };
  if (!left) return print(options, json, text);
  const more = [...left.values()].reduce((sum, each) => sum + each, 0);
  const whole = { ...json, left: more };
  if (more === 0) return print(options, whole, text);
  const names = [...left.keys()].join(",");
  const whose = `${count(more)} more ${more === 1 ? "is" : "are"} of workflows that are not in langgraph.json here`;
  return print(options, whole, [text, `${whose}: ${printable(`statecard prune --days ${days} --workflow ${names}`)}`]);
}

/**
 * The workflows that an option names, which may be repeated and may have commas.
 *
 * @throws USAGE for one that no task is of.
 */
function storedWorkflows(option: readonly string[], stored: readonly string[]): ReadonlySet<string> {
  const names = option.flatMap((text) => text.split(",").map((name) => name.trim()));
  const unknown = names.find((name) => !stored.includes(name));
  if (unknown === undefined) return new Set(names);
  const known = stored.join(", ") || "none";
  throw usage(`--workflow: no task here is of a workflow "${shorten(unknown, 100)}"; there are tasks of: ${known}`);
}

/** How many tasks of each workflow could be removed, where there are any. */
async function endedOf(
  store: SqlStore,
  workflows: ReadonlySet<string>,
  before: number,
): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for (const name of workflows) {
    const ended = await removeEnded({ store, workflows: new Set([name]), before, isDry: true });
    if (ended > 0) counts.set(name, ended);
  }
  return counts;
}
