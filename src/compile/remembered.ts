import { snapshotOf, type ChannelValues } from "./channels.ts";
import type { Runtime } from "./runtime.ts";

/** The lines of the memory block for a step in which the model decides; none where nothing is remembered. */
export async function rememberedFor(
  { memories, workflow }: Runtime,
  taskId: string,
  values: ChannelValues,
): Promise<readonly string[]> {
  if (!memories) return [];
  const { state } = snapshotOf(workflow, values);
  return (await memories.of({ taskId, state })?.block({ taskId })) ?? [];
}
