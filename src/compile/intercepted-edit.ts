import { isPassedOn, type Request } from "../people/requests.ts";
import { intercept } from "../tools/intercept.ts";
import { checkArguments } from "../workflow/calls.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { childOf } from "../workflow/within.ts";
import { childTaskIds } from "./child.ts";
import type { LookedAt, TaskStore } from "./store.ts";

/** Who has asked for an approval: a workflow, and its task as it stands. */
export interface Asker {
  readonly workflow: AnyWorkflow;
  readonly taskId: string;
  readonly head: LookedAt;
}

/**
 * Why interceptors refuse what a person has made of a call; null where they do not, or the call cannot be judged here.
 * The state stays as it is until the call is due, so they say now what they will say then.
 */
export function interceptedEdit(
  asker: Asker,
  { tool: name = "" }: Request,
  edited: Readonly<Record<string, unknown>>,
): string | null {
  const tool = asker.workflow.tools[name];
  if (!tool || asker.head.quarantine !== null) return null;
  const checked = checkArguments(name, tool, edited);
  if (!checked.ok) return null;
  const { execution, state } = asker.head;
  const context = { tool: name, taskId: asker.taskId, step: execution.step, state };
  return intercept(asker.workflow, tool, { tool: name, args: checked.args }, context);
}

/** Follows a request that was passed on to the workflow within that has made it. */
export async function askerOf(
  store: TaskStore,
  workflow: AnyWorkflow,
  taskId: string,
  id: string,
): Promise<Asker | null> {
  const head = await store.look(taskId);
  if (!head) return null;
  if (!isPassedOn(id)) return { workflow, taskId, head };
  const child = childOf(workflow.steps[head.execution.step]);
  const end = id.indexOf("/");
  const [, , index = "0"] = id.slice(0, end).split(".");
  const childId = childTaskIds(taskId, head.execution, head.forks)[Number(index)];
  return child && childId !== undefined ? askerOf(store, child, childId, id.slice(end + 1)) : null;
}
