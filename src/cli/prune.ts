import { isoTime } from "../compile/iso-times.ts";
import { removeEnded } from "../compile/prune.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { namesWithin } from "../workflow/within.ts";
import { storeForReading } from "./database.ts";
import { usage } from "./exit.ts";
import { declaredGraphs, graphIds, loadGraphs } from "./graphs.ts";
import { wholeNumber, type CommonOptions } from "./options.ts";
import { print } from "./print.ts";
import { count, printable } from "./terminal.ts";

export interface PruneCommandOptions extends CommonOptions {
  readonly days?: string;
  readonly graphs?: string;
  readonly dryRun?: boolean;
}

export const DAY_MS = 24 * 3_600_000;
export const MOST_DAYS = 36_500;

/** `statecard prune`: removes tasks that ended long ago. */
export async function pruneCommand(options: PruneCommandOptions): Promise<number> {
  const days = wholeNumber("--days", options.days, 0, MOST_DAYS);
  if (days === undefined) throw usage("how long are tasks that have ended kept? statecard prune --days 90");
  const isDry = options.dryRun === true;
  const store = storeForReading(options.db);
  const stored = await store.workflows();
  const before = Date.now() - days * DAY_MS;
  const workflows = await namedWorkflows(options.graphs, store, stored);
  const ended = await removeEnded({ store, workflows, before, isDry });
  const others = new Set(options.graphs === undefined ? stored.filter((name) => !workflows.has(name)) : []);
  const left = await removeEnded({ store, workflows: others, before, isDry: true });
  await store.close();
  const tasks = `${count(ended)} ${ended === 1 ? "task" : "tasks"} that ended before ${isoTime(before)}`;
  const found = `There ${ended === 1 ? "is" : "are"} ${tasks}; nothing was removed.`;
  const text = isDry ? found : `Removed ${tasks}.`;
  const json = { before: isoTime(before), [isDry ? "ended" : "removed"]: ended, left };
  if (left === 0) return print(options, json, text);
  const names = [...others].join(",");
  const whose = `${count(left)} more ${left === 1 ? "is" : "are"} of workflows that are not in langgraph.json here`;
  return print(options, json, [text, `${whose}: ${printable(`statecard prune --days ${days} --graphs ${names}`)}`]);
}

/** The workflows that are meant: of graphs, or by the name that their tasks bear, since a graph may be gone. */
async function namedWorkflows(
  graphs: string | undefined,
  store: SqlStore,
  stored: readonly string[],
): Promise<ReadonlySet<string>> {
  const ids = graphIds(graphs);
  const declared = declaredGraphs();
  const names = ids.filter((id) => !Object.hasOwn(declared, id) && stored.includes(id));
  const loaded = await loadGraphs(
    ids.filter((id) => !names.includes(id)),
    store,
  );
  return new Set([...names, ...namesWithin([...loaded.values()].map(({ runtime }) => runtime.workflow))]);
}
