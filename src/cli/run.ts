import { canStart } from "../compile/admit-input.ts";
import { describeTask, type TaskDescription } from "../compile/describe.ts";
import { shownTask } from "../compile/iso-times.ts";
import { canGoOn } from "../compile/open-requests.ts";
import { replyTo } from "../compile/reply-to.ts";
import type { TaskStore } from "../compile/store.ts";
import { newTaskId } from "../compile/task-id.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { WorkflowError } from "../errors.ts";
import { openStore } from "../storage/open-store.ts";
import { chat } from "./chat.ts";
import { storeForReading } from "./database.ts";
import { EXIT, exitCodeOfStatus, usage } from "./exit.ts";
import { graphOfTask, loadGraph, rememberGraph } from "./graphs.ts";
import { howToAnswer } from "./hints.ts";
import { runInterruptibly } from "./interruptible.ts";
import { settleChange } from "./migrate.ts";
import { sameTask, type CommonOptions } from "./options.ts";
import { printOutcome } from "./outcome.ts";
import { systemUser } from "../internal/system-user.ts";
import { whoAnswers } from "./person.ts";
import { ON_COMMAND_LINE, verdictOf, type VerdictOptions } from "./replies.ts";
import { detectTerminal, printable } from "./terminal.ts";

export interface RunCommandOptions extends CommonOptions {
  readonly task?: string;
  readonly message?: string;
  readonly set?: readonly string[];
  readonly chat?: boolean;
}
export interface ResumeCommandOptions extends CommonOptions, VerdictOptions {
  readonly request?: string;
  readonly as?: string;
  readonly chat?: boolean;
}

/** `statecard run`: starts a task and runs it to its first pause or its end. */
export async function runCommand(name: string, options: RunCommandOptions): Promise<number> {
  if (options.task === "") {
    throw new WorkflowError("MISSING_TASK_ID", "--task is empty; give an id, or leave it out and one is made up");
  }
  const store = openStore(options.db);
  const graph = await loadGraph(name, store);
  const taskId = options.task ?? newTaskId(graph.runtime.workflow.name);
  await refuseWaiting(store, taskId, options);
  const input = {
    ...readSettings(options.set ?? [], graph),
    ...(options.message === undefined ? {} : { message: options.message }),
  };
  if (canStart(graph.runtime.workflow, input)) await rememberGraph(store, taskId, name);
  const again = sameTask({ ...options, graph: undefined });
  if (options.chat) return chat({ graph, store, taskId, start: input, options: again, who: systemUser() });
  await runInterruptibly(graph, taskId, input);
  return report({ graph, store, taskId, options, before: { state: {}, revision: 0 } });
}

/** A message that starts a task must not become the answer to what another start has asked. */
async function refuseWaiting(store: TaskStore, taskId: string, options: RunCommandOptions): Promise<void> {
  if ((await store.head(taskId)) === null) return;
  const { waiting } = await describeTask(store, taskId);
  if (!waiting) return;
  const goOn = howToAnswer(detectTerminal(), taskId, sameTask(options), waiting);
  throw new WorkflowError("TASK_WAITING", `task ${taskId} exists and waits for an answer; give it with: ${goOn}`, {
    details: { taskId, open: waiting },
  });
}

/** `statecard resume`: records an answer where one is given, and lets the task go on. */
export async function resumeCommand(taskId: string, options: ResumeCommandOptions): Promise<number> {
  const verdict = verdictOf(options);
  if (!verdict && options.request !== undefined) {
    throw usage("--request names what is answered; give --answer, --approve, --reject or --edit with it");
  }
  if (!verdict && !options.chat && options.as !== undefined) {
    throw usage("--as names who answers; give --answer, --approve, --reject or --edit with it");
  }
  const store = storeForReading(options.db);
  const task = await describeTask(store, taskId);
  const who = verdict || options.chat ? await whoAnswers(options.as, store) : systemUser();
  const graph = await graphOfTask(store, taskId, task.workflow, options.graph);
  if (!options.json && !(await settleChange(store, graph.runtime.workflow, taskId))) {
    process.stdout.write(`Deleted ${printable(taskId)}.\n`);
    return EXIT.ok;
  }
  if (verdict) {
    await runInterruptibly(graph, taskId, await replyTo(store, task, verdict, options.request, ON_COMMAND_LINE), {
      who,
    });
  } else if (task.status === "completed") {
    const message = `task ${taskId} was completed; there is nothing to resume; start a new one with: npx statecard run ${task.workflow}`;
    throw new WorkflowError("TASK_FINISHED", message, { details: { taskId } });
  } else if (!task.waiting || (await canGoOn(store, taskId, await store.look(taskId), graph.runtime.clock.now()))) {
    await runInterruptibly(graph, taskId, null);
  }
  if (options.chat) return chat({ graph, store, taskId, start: null, options: sameTask(options), who });
  return report({ graph, store, taskId, options, before: task });
}

/** `--set field=value`: JSON where the field is no text. */
export function readSettings(settings: readonly string[], graph: WorkflowGraph): Record<string, unknown> {
  const { state } = graph.runtime.workflow;
  return Object.fromEntries(
    settings.map((setting) => {
      const at = setting.indexOf("=");
      if (at < 1) throw usage(`--set ${setting}: write field=value`);
      const [name, text] = [setting.slice(0, at), setting.slice(at + 1)];
      const takesText = !Object.hasOwn(state, name) || state[name]?.schema.safeParse(text).success;
      return [name, takesText ? text : parseJson(text)];
    }),
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

interface Report {
  readonly graph: WorkflowGraph;
  readonly store: TaskStore;
  readonly taskId: string;
  readonly options: CommonOptions;
  readonly before: Pick<TaskDescription, "state" | "revision">;
}

async function report({ graph, store, taskId, options, before }: Report): Promise<number> {
  const task = await describeTask(store, taskId);
  if (options.json) process.stdout.write(`${JSON.stringify(shownTask(task), null, 2)}\n`);
  else await printOutcome(detectTerminal(), graph, store, task, before, sameTask(options));
  return exitCodeOfStatus(task.status);
}
