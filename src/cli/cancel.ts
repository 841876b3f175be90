import { describeTask } from "../compile/describe.ts";
import { signedIn } from "../compile/identity.ts";
import { shownTask } from "../compile/iso-times.ts";
import { storeForReading } from "./database.ts";
import { EXIT } from "./exit.ts";
import { graphOfTask } from "./graphs.ts";
import type { CommonOptions } from "./options.ts";
import { systemUser } from "../internal/system-user.ts";
import { printable } from "./terminal.ts";

export interface CancelCommandOptions extends CommonOptions {
  readonly reason?: string;
}

/** `statecard cancel`: ends a task for good. A process that runs it can commit nothing more. */
export async function cancelCommand(taskId: string, options: CancelCommandOptions): Promise<number> {
  const store = storeForReading(options.db);
  const { workflow } = await describeTask(store, taskId);
  const graph = await graphOfTask(store, taskId, workflow, options.graph);
  await graph.cancel({ configurable: { thread_id: taskId, ...signedIn(systemUser()) } }, options.reason);
  const task = await describeTask(store, taskId);
  const text = options.json
    ? JSON.stringify(shownTask(task), null, 2)
    : `${printable(taskId)} is cancelled at ${task.step}.`;
  process.stdout.write(`${text}\n`);
  return EXIT.ok;
}
