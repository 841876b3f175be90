import { briefTask } from "../compile/brief-task.ts";
import { childTaskIds } from "../compile/child.ts";
import { describeTask } from "../compile/describe.ts";
import { diagnose, type Patient } from "../compile/doctor.ts";
import type { LookedAt, TaskStore } from "../compile/store.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { unknownTask } from "../compile/admit-input.ts";
import { isPlainObject } from "../internal/json.ts";
import { runCall } from "../tools/call.ts";
import { graphAtHand } from "./brief.ts";
import { storeForReading } from "./database.ts";
import { EXIT } from "./exit.ts";
import type { CommonOptions } from "./options.ts";
import { detectTerminal, emphasise, printable } from "./terminal.ts";

/** `statecard doctor`: what troubles a task. Ends with 3 where something does. */
export async function doctorCommand(taskId: string, options: CommonOptions): Promise<number> {
  const store = storeForReading(options.db);
  const task = await describeTask(store, taskId);
  const graph = await graphAtHand(store, taskId, options.graph);
  const looked = await store.look(taskId);
  if (!looked) throw unknownTask(taskId);
  const troubles = diagnose({
    workflow: graph?.runtime.workflow ?? null,
    execution: looked.execution,
    state: task.state,
    status: task.status,
    waiting: task.waiting ?? [],
    lastError: task.lastError ?? null,
    quarantine: looked.quarantine,
    events: await store.events(taskId),
    updatedAt: await lastSign(store, taskId, looked),
    now: Date.now(),
    owner: await store.owner(taskId),
    policy: graph?.runtime.view.policy ?? null,
    drift: graph ? await driftOf(store, graph, taskId, task.state) : [],
  });
  if (options.json) {
    const { process: name, status, step } = await briefTask(store, taskId, graph?.runtime.workflow);
    process.stdout.write(`${JSON.stringify({ taskId, process: name, status, step, troubles }, null, 2)}\n`);
  } else {
    const terminal = detectTerminal();
    const lines = troubles.flatMap(({ code, evidence, action }) => [
      `${emphasise(terminal, "bold", code)}: ${printable(evidence)}`,
      `  ${printable(action)}`,
    ]);
    const head = `${printable(taskId)} ${terminal.marks.dot} ${task.workflow} v${task.version} ${terminal.marks.dot} ${task.status} at ${task.step}`;
    process.stdout.write(
      `${[head, ...lines, ...(lines.length > 0 ? [] : ["Nothing is wrong with it."])].join("\n")}\n`,
    );
  }
  return troubles.length > 0 ? EXIT.refused : EXIT.ok;
}

/** When a task, or a task of a workflow that is its step, has committed something last, or logged it. */
async function lastSign(store: TaskStore, taskId: string, looked: LookedAt | null): Promise<number> {
  if (!looked) return 0;
  const children = childTaskIds(taskId, looked.execution, looked.forks);
  const signs = children.map(async (child) => lastSign(store, child, await store.look(child)));
  const logged = (await store.events(taskId, 1)).at(-1)?.at ?? 0;
  return Math.max(looked.updatedAt, logged, ...(await Promise.all(signs)));
}

/** What the workflow's own `checkFiles`, which only reads, says of the files that the task knows. */
async function driftOf(
  store: TaskStore,
  { runtime }: WorkflowGraph,
  taskId: string,
  state: Patient["state"],
): Promise<readonly string[]> {
  const tool = runtime.workflow.tools.checkFiles;
  if (tool?.effect !== "read") return [];
  const context = {
    taskId,
    step: "doctor",
    idempotencyKey: `${taskId}/doctor`,
    clients: runtime.clients,
    clock: runtime.clock,
    state,
    artifacts: { read: (id: string) => store.artifact(taskId, id), list: () => store.artifacts(taskId) },
  };
  const { value } = await runCall("doctor", { tool: "checkFiles", args: {} }, tool, context, undefined);
  // A tool of this name may be the user's own, and give anything back.
  const { changed, gone } = isPlainObject(value) ? value : {};
  return [changed, gone]
    .flatMap((paths): readonly unknown[] => (Array.isArray(paths) ? paths : []))
    .filter((path) => typeof path === "string");
}
