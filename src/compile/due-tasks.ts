import { isWorkflowError } from "../errors.ts";
import { sensitiveSources } from "../workflow/sensitive.ts";
import { workflowsWithin } from "../workflow/within.ts";
import { childTaskIds, parentTaskId } from "./child.ts";
import { isDecided } from "./decided-consents.ts";
import type { Runtime } from "./runtime.ts";
import type { OpenFilter, OpenPlace, OpenRequest, TaskStore } from "./store.ts";
import { removeExpired } from "./time-to-live.ts";
import { untouched } from "./untouched.ts";

const PAGE = 500;

/**
 * The tasks of a workflow whose question or approval has run out of time, and those that need no consent of their own
 * any more, each once; before that, those whose time to live is over are removed. What does not fit the present
 * release is neither removed nor given. Reads what is due, not all that there is; only where consents are asked and
 * some have been decided, all approvals that are open.
 *
 * @param limit so many rows are read at once.
 */
export async function* dueTasks(runtime: Runtime, limit = PAGE): AsyncGenerator<string, void> {
  await removeUntouched(runtime, limit);
  yield* fitting(runtime, [pastDeadline(runtime, limit), decidedConsents(runtime, -Infinity, limit)]);
}

/**
 * The tasks that need no consent of their own any more since somebody has decided for another task, or at the command
 * line. Reads all approvals that are open, where something was decided since then; nothing otherwise.
 *
 * @param since milliseconds since the epoch.
 */
export function tasksDecidedSince(runtime: Runtime, since: number): AsyncGenerator<string, void> {
  return fitting(runtime, [decidedConsents(runtime, since, PAGE)]);
}

/** What was found, each once, without what does not fit the present release, or goes on with its parent. */
async function* fitting(
  { store }: Runtime,
  found: readonly AsyncGenerator<string, void>[],
): AsyncGenerator<string, void> {
  const seen = new Set<string>();
  for (const some of found) {
    for await (const taskId of some) {
      if (seen.has(taskId)) continue;
      seen.add(taskId);
      if (await goesOnWithParent(store, taskId)) continue;
      if ((await store.look(taskId))?.quarantine === null) yield taskId;
    }
  }
}

/** Whether a task is one that another waits for now, which asks in its place and runs it. */
async function goesOnWithParent(store: TaskStore, taskId: string): Promise<boolean> {
  const parentId = parentTaskId(taskId);
  const parent = parentId === null ? null : await store.look(parentId);
  return (
    parentId !== null && parent !== null && childTaskIds(parentId, parent.execution, parent.forks).includes(taskId)
  );
}

/** Tasks whose time for an answer is over. */
async function* pastDeadline(runtime: Runtime, limit: number): AsyncGenerator<string, void> {
  for await (const { taskId } of openOf(runtime, { dueBy: runtime.clock.now(), limit })) yield taskId;
}

/**
 * Tasks that wait for a consent, of their own or of a workflow within theirs, which somebody has given or refused for
 * another task, or at the command line. Open approvals are read page by page: an index does not tell which are consents.
 */
async function* decidedConsents(runtime: Runtime, since: number, limit: number): AsyncGenerator<string, void> {
  const { store, workflow } = runtime;
  const asking = workflowsWithin(workflow).filter((each) => sensitiveSources(each).size > 0);
  const names = new Set(asking.map(({ name }) => name));
  if (names.size === 0) return;
  if (!(await store.allConsents()).some((row) => names.has(row.workflow) && row.at >= since)) return;
  for await (const { taskId, request } of openOf(runtime, { approvals: true, limit })) {
    if (await isDecided(store, taskId, request)) yield taskId;
  }
}

/** Open requests of a workflow, page by page. */
async function* openOf(
  { store, workflow }: Runtime,
  filter: Pick<OpenFilter, "dueBy" | "approvals" | "limit">,
): AsyncGenerator<OpenRequest, void> {
  for (let after: OpenPlace | undefined; ;) {
    const page = await store.openRequests({ workflow: workflow.name, ...filter, ...(after ? { after } : {}) });
    for (const open of page) {
      after = { ...open.request, taskId: open.taskId };
      yield open;
    }
    if (page.length < filter.limit) return;
  }
}

async function removeUntouched(runtime: Runtime, limit: number): Promise<void> {
  const { store, workflow, clock } = runtime;
  if (workflow.timeToLiveMs === Infinity) return;
  const since = clock.now() - workflow.timeToLiveMs;
  for await (const { taskId } of untouched(store, { workflow: workflow.name, since, limit })) {
    try {
      await removeExpired(runtime, taskId);
    } catch (error) {
      if (!isWorkflowError(error, "TASK_QUARANTINED")) throw error;
    }
  }
}
