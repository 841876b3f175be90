import { WorkflowError } from "../errors.ts";
import { shorten } from "../internal/json.ts";
import { redactDeep } from "../internal/redact.ts";
import { addUsage, NO_USAGE, type Observation, type Pending, type Usage } from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import type { Settlement } from "../workflow/settle.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import type { MapResult } from "../workflow/step.ts";
import { openMoves } from "../workflow/next-step.ts";
import type { Decision } from "../workflow/record.ts";
import { runChild, type ChildCall } from "./act-child.ts";
import { pause, type Action } from "./action.ts";
import { childTaskIds, type ChildStanding } from "./child.ts";
import { wholeValue } from "./whole-value.ts";

type Ended = Extract<ChildStanding, { kind: "ended" }>;

/** What a map step's calls come to: its output decides, whatever became of each. */
export async function mapOutcome(
  { runtime, snapshot, lease }: Action,
  observation: Extract<Observation, { kind: "results" }>,
): Promise<Settlement> {
  const results: MapResult[] = [];
  for (const result of observation.results) {
    const value = result.status === "ok" ? await wholeValue(runtime.store, lease.taskId, result) : null;
    results.push({ status: result.status, value, error: result.error ?? null });
  }
  const result = outputOf(runtime.workflow, snapshot.execution.step, snapshot.state, results);
  return { observation, result, usage: NO_USAGE };
}

/** Runs a map step's workflows, several at once, each as a task of its own; one that waits holds back no other. */
export async function actWorkflows(
  action: Action,
  pending: Extract<Pending, { kind: "workflows" }>,
): Promise<Settlement> {
  const { runtime, snapshot, lease, forks } = action;
  const { step } = snapshot.execution;
  const runner = runtime.children[step];
  const ids = childTaskIds(lease.taskId, snapshot.execution, forks);
  if (!runner || ids.length !== pending.inputs.length)
    throw new WorkflowError("ILLEGAL_STATE", `step ${step} runs no workflows`);
  const children = pending.inputs.map((input, index): ChildCall => ({
    runner,
    input,
    childId: ids[index] ?? "",
    prefix: `w${pending.decision}.${forks}.${index}/`,
    passed: new Set(),
  }));
  const ended = new Map<number, Ended>();
  const parallel = itemsAtOnce(runtime.workflow, step);
  for (;;) {
    const open = children.flatMap((child, index) => (ended.has(index) ? [] : [{ child, index }]));
    const asked = await pooled(open, parallel, async ({ child, index }) => {
      const standing = await runChild(action, pending.decision, child);
      if (standing.kind === "waiting") return standing.requests;
      ended.set(index, standing);
      return [];
    });
    const requests = asked.flat();
    if (requests.length > 0) {
      await pause(action, requests);
      continue;
    }
    runtime.endedChildren.set(lease.taskId, [...(runtime.endedChildren.get(lease.taskId) ?? []), ...ids]);
    return workflowsOutcome(
      action,
      pending.workflow,
      children.map((_, index) => ended.get(index) as Ended),
    );
  }
}

const DEFAULT_PARALLEL = 4;

/** How many items of a map step are worked on at once. */
export function itemsAtOnce(workflow: AnyWorkflow, step: string): number {
  return workflow.steps[step]?.map?.parallel ?? DEFAULT_PARALLEL;
}

function workflowsOutcome({ runtime, snapshot }: Action, workflow: string, ended: readonly Ended[]): Settlement {
  const results = ended.map(({ status, state, error }): MapResult => ({ status, value: state, error }));
  const failed = ended.filter(({ status }) => status === "failed").length;
  const status = failed === 0 ? `completed, ${ended.length} times` : `failed, ${failed} of ${ended.length}`;
  const usage = ended.reduce((sum: Usage, child) => addUsage(sum, child.usage), NO_USAGE);
  const result = outputOf(runtime.workflow, snapshot.execution.step, snapshot.state, results);
  const untrusted = ended.some((child) => child.untrusted);
  return { observation: { kind: "workflow", workflow, status }, result, usage, untrusted };
}

/**
 * What a map step makes of its results.
 *
 * @throws STEP_FAILED.
 */
export function outputOf(workflow: AnyWorkflow, step: string, state: State, results: readonly MapResult[]): Decision {
  let decision: Decision;
  try {
    decision = redactDeep((workflow.steps[step]?.map?.output(results, state as never) ?? {}) as Decision);
  } catch (error) {
    const said = shorten(error instanceof Error ? error.message : String(error));
    throw new WorkflowError("STEP_FAILED", `output of step ${step} threw: ${said}`, { cause: error });
  }
  // The step would come again to act on them, and with it all the items.
  if (decision.calls?.length || decision.ask) {
    const returned = decision.ask ? "a question" : "calls";
    throw new WorkflowError(
      "STEP_FAILED",
      `output of step ${step} returned ${returned}; it may return {patch, clear, next, reply, because}`,
    );
  }
  // Where the table leaves one way only, the end of the list takes it.
  const open = openMoves(workflow, step, { ...state, ...decision.patch });
  return { ...decision, next: decision.next ?? (open.length === 1 ? (open[0] ?? null) : null) };
}

/** Does the work for each item, so many at once. All of it ends before an error is passed on. */
async function pooled<Item, Result>(
  items: readonly Item[],
  parallel: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const errors: unknown[] = [];
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < items.length; index = next++) {
      try {
        results[index] = await work(items[index] as Item);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(parallel, items.length) }, worker));
  if (errors.length > 0) throw errors[0];
  return results;
}
