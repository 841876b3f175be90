import { isWorkflowError } from "../errors.ts";
import { shorten } from "../internal/json.ts";
import type { Memories, MemoryTask } from "../memory/memories.ts";
import type { Memory } from "../memory/memory.ts";
import type { CallResult } from "../state/execution.ts";
import type { Memorable } from "../workflow/memorable.ts";
import { sensitiveKindsOf } from "../workflow/sensitive.ts";
import type { AnyTool } from "../workflow/tool.ts";
import type { Action } from "./action.ts";

/** The lines of the memory block for a decision of a model; none where nothing is remembered. */
export async function rememberedFor(memories: Memories, task: MemoryTask): Promise<readonly string[]> {
  return (await memories.of(task)?.block({ taskId: task.taskId })) ?? [];
}

/**
 * Writes what calls found worth remembering into the task's memory. It comes from their recorded results, and a
 * memory's id follows from what it says: so a run that repeats this after a crash writes the same memories.
 *
 * @returns what the model is told of it, a note for each call.
 */
export async function rememberResults(
  { runtime, snapshot, lease: { taskId } }: Action,
  results: readonly CallResult[],
): Promise<readonly string[]> {
  const { memories, workflow } = runtime;
  if (!memories) return [];
  const memory = memories.of({ taskId, state: snapshot.state });
  const notes: string[] = [];
  for (const result of results) {
    const tool = workflow.tools[result.tool];
    const found = memorableIn(tool, result);
    const isSensitive = tool !== undefined && sensitiveKindsOf(tool).length > 0;
    if (typeof found === "string") notes.push(`what ${result.id} found was not remembered: ${found}`);
    else if (found.length > 0 && !memory)
      notes.push(`what ${result.id} found was not remembered: it is not known whose memory this is`);
    else if (found.length > 0 && memory) {
      const told = [];
      for (const one of found)
        told.push(await write(memory, { ...one, taskId, step: snapshot.execution.step }, isSensitive));
      notes.push(`remembered of ${result.id} for later tasks: ${told.join(", ")}`);
    }
  }
  return notes;
}

/** What a call found; where its tool cannot say so, why. */
function memorableIn(tool: AnyTool | undefined, result: CallResult): readonly Memorable[] | string {
  if (result.status !== "ok") return [];
  try {
    return tool?.remembers?.(result) ?? [];
  } catch (error) {
    return shorten(`its tool threw: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function write(memory: Memory, found: Parameters<Memory["remember"]>[0], isSensitive: boolean): Promise<string> {
  try {
    const { id, type, priority } = (await memory.remember(found, { isSensitive })).memory;
    return `${id} (${type}, priority ${priority})`;
  } catch (error) {
    // One that cannot be written would fail the task for ever; a store that is away may be there the next time.
    if (!isWorkflowError(error, "INVALID_OPTIONS")) throw error;
    return `not one of them: ${error.message}`;
  }
}
