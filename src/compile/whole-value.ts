import { isPlainObject } from "../internal/json.ts";
import type { CallResult } from "../state/execution.ts";
import type { TaskStore } from "./store.ts";

/** The whole value of a result, also where a preview stands for it. */
export async function wholeValue(
  store: TaskStore,
  taskId: string,
  { value, artifact: id }: CallResult,
): Promise<unknown> {
  const isPreview = id !== undefined && isPlainObject(value) && value.artifact === id;
  const artifact = isPreview ? await store.artifact(taskId, id) : null;
  if (!artifact) return value;
  return artifact.kind === "json" ? (JSON.parse(artifact.text) as unknown) : artifact.text;
}
