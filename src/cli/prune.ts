import { isoTime } from "../compile/iso-times.ts";
import { removeEnded } from "../compile/prune.ts";
import { storeForReading } from "./database.ts";
import { usage } from "./exit.ts";
import { graphIds, loadGraphs } from "./graphs.ts";
import { wholeNumber, type CommonOptions } from "./options.ts";
import { print } from "./print.ts";
import { count } from "./terminal.ts";

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
  const graphs = await loadGraphs(graphIds(options.graphs), store);
  const before = Date.now() - days * DAY_MS;
  const workflows = [...graphs.values()].map(({ runtime }) => runtime.workflow);
  const ended = await removeEnded({ store, workflows, before, isDry });
  await store.close();
  const tasks = `${count(ended)} ${ended === 1 ? "task" : "tasks"} that ended before ${isoTime(before)}`;
  const text = isDry ? `There are ${tasks}; nothing was removed.` : `Removed ${tasks}.`;
  const json = { before: isoTime(before), [isDry ? "ended" : "removed"]: ended };
  return print(options, json, text);
}
