import { dueTasks, tasksDecidedSince } from "../../compile/due-tasks.ts";
import { removeEnded } from "../../compile/prune.ts";
import type { WorkflowGraph } from "../../compile/workflow-graph.ts";
import { namesWithin } from "../../workflow/within.ts";
import type { SqlStore } from "../../storage/sql-store.ts";
import type { Wake } from "../../storage/wakes.ts";
import { EVERY, type TaskQueue, type Upkeep } from "./task-queue.ts";

export interface UpkeepOptions {
  readonly store: SqlStore;
  readonly queue: TaskQueue;
  /** By the workflow's name. */
  readonly graphs: ReadonlyMap<string, WorkflowGraph>;
  /** How long tasks that have ended are kept, in milliseconds; for ever unless set. */
  readonly keepEndedMs?: number;
}

const AT_ONCE = 500;

/** What has to be done from time to time, by one worker for all. */
export const upkeep: Readonly<Record<Upkeep, (options: UpkeepOptions) => Promise<number>>> = {
  sweep: sweepWakes,
  consents: sweepConsents,
  deadlines: sweepDeadlines,
  memories: ({ store }) => store.memory().cleanUp(),
  prune: pruneEnded,
};

/**
 * Makes jobs again for all tasks that are noted to be run, so that one whose job was lost is run after all.
 *
 * @returns how many tasks are noted.
 */
async function sweepWakes({ store, queue }: UpkeepOptions): Promise<number> {
  const wakes = await store.wakes();
  const byWorkflow = new Map<string, Wake[]>();
  for (const wake of wakes) {
    const { workflow } = wake;
    if (workflow === null) {
      // Its start was refused, or it has been deleted since.
      await store.removeWake(wake);
      continue;
    }
    const noted = byWorkflow.get(workflow) ?? [];
    byWorkflow.set(workflow, noted);
    noted.push(wake);
  }
  for (const [workflow, noted] of byWorkflow) {
    for (let at = 0; at < noted.length; at += AT_ONCE) await queue.remind(workflow, noted.slice(at, at + AT_ONCE));
  }
  return wakes.length;
}

/**
 * Finds tasks whose time for an answer is over and that have no job of their own for it, as those that paused
 * outside of a worker, and those whose consent was decided elsewhere; removes those whose time to live is over.
 *
 * @returns how many are to go on.
 */
async function sweepDeadlines({ queue, graphs }: UpkeepOptions): Promise<number> {
  let due = 0;
  for (const [workflow, { runtime }] of graphs) {
    for await (const taskId of dueTasks(runtime)) {
      // Noted, since a task whose consent was given elsewhere looks like one that has nothing to do.
      await queue.wake(workflow, taskId);
      due++;
    }
  }
  return due;
}

/** A round may come late, and clocks differ. */
const ROUNDS_BACK = 5;

/**
 * Finds tasks whose consent was decided elsewhere a short while ago: somebody may wait for them, and need not until the
 * hourly round.
 *
 * @returns how many are to go on.
 */
async function sweepConsents({ queue, graphs }: UpkeepOptions): Promise<number> {
  let due = 0;
  for (const [workflow, { runtime }] of graphs) {
    for await (const taskId of tasksDecidedSince(runtime, runtime.clock.now() - ROUNDS_BACK * EVERY.consents)) {
      await queue.wake(workflow, taskId);
      due++;
    }
  }
  return due;
}

/**
 * Removes tasks that ended long ago, where they are not kept for ever.
 *
 * @returns how many.
 */
async function pruneEnded({ store, graphs, keepEndedMs }: UpkeepOptions): Promise<number> {
  if (keepEndedMs === undefined) return 0;
  const runtimes = [...graphs.values()].map(({ runtime }) => runtime);
  const workflows = namesWithin(runtimes.map(({ workflow }) => workflow));
  const [now = 0] = runtimes.map(({ clock }) => clock.now());
  return removeEnded({ store, workflows, before: now - keepEndedMs });
}
