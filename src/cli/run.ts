import { randomInt } from "node:crypto";
import { Command } from "@langchain/langgraph";
import { describeTask, type TaskDescription } from "../compile/describe.ts";
import type { TaskStore } from "../compile/store.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { WorkflowError } from "../errors.ts";
import { sqliteStore } from "../storage/sqlite/sqlite.ts";
import { chat } from "./chat.ts";
import { storeForReading } from "./database.ts";
import { exitCodeOfStatus, usage } from "./exit.ts";
import { graphOfTask, loadGraph } from "./graphs.ts";
import { howToResume } from "./hints.ts";
import { runInterruptibly } from "./interruptible.ts";
import { sameTask, type CommonOptions } from "./options.ts";
import { printOutcome } from "./outcome.ts";
import { detectTerminal } from "./terminal.ts";

export interface RunCommandOptions extends CommonOptions {
  readonly task?: string;
  readonly message?: string;
  readonly set?: readonly string[];
  readonly chat?: boolean;
}
export interface ResumeCommandOptions extends CommonOptions {
  readonly answer?: string;
  readonly request?: string;
  readonly chat?: boolean;
}

/** `statecard run`: starts a task and runs it to its first pause or its end. */
export async function runCommand(name: string, options: RunCommandOptions): Promise<number> {
  if (options.task === "") {
    throw new WorkflowError("MISSING_TASK_ID", "--task is empty; give an id, or leave it out and one is made up");
  }
  const store = sqliteStore(options.db);
  const graph = await loadGraph(name, store);
  const taskId = options.task ?? newTaskId(graph.runtime.workflow.name);
  await refuseWaiting(store, taskId, options);
  const input = {
    ...readSettings(options.set ?? [], graph),
    ...(options.message === undefined ? {} : { message: options.message }),
  };
  await rememberGraph(store, taskId, name);
  const again = sameTask({ ...options, graph: undefined });
  if (options.chat) return chat({ graph, store, taskId, start: input, options: again });
  await runInterruptibly(graph, taskId, input);
  return report({ graph, store, taskId, options, before: { state: {}, revision: 0 } });
}

/** A message that starts a task must not become the answer to what another start has asked. */
async function refuseWaiting(store: TaskStore, taskId: string, options: RunCommandOptions): Promise<void> {
  if ((await store.head(taskId)) === null) return;
  const { waiting } = await describeTask(store, taskId);
  if (!waiting) return;
  const goOn = howToResume(detectTerminal(), taskId, sameTask(options), true);
  throw new WorkflowError("TASK_WAITING", `task ${taskId} exists and waits for an answer; give it with: ${goOn}`, {
    details: { taskId, open: waiting },
  });
}

/** `statecard resume`: records an answer where one is given, and lets the task go on. */
export async function resumeCommand(taskId: string, options: ResumeCommandOptions): Promise<number> {
  if (options.request !== undefined && options.answer === undefined) {
    throw usage("--request names what --answer answers; give both");
  }
  const store = storeForReading(options.db);
  const task = await describeTask(store, taskId);
  const graph = await graphOfTask(store, taskId, task.workflow, options.graph);
  if (options.answer !== undefined) {
    checkAsked(task, options.request);
    const resume = options.request === undefined ? options.answer : { [options.request]: options.answer };
    await runInterruptibly(graph, taskId, new Command({ resume }));
  } else if (task.status === "completed") {
    const message = `task ${taskId} was completed; there is nothing to resume; start a new one with: npx statecard run ${task.workflow}`;
    throw new WorkflowError("TASK_FINISHED", message, { details: { taskId } });
  } else if (!task.waiting) {
    await runInterruptibly(graph, taskId, null);
  }
  if (options.chat) return chat({ graph, store, taskId, start: null, options: sameTask(options) });
  return report({ graph, store, taskId, options, before: task });
}

/** Refuses an answer where nothing, or something else, is asked; finished tasks are refused by the graph. */
function checkAsked(task: TaskDescription, request: string | undefined): void {
  const { taskId, status, step, waiting } = task;
  if (!waiting && status !== "completed" && status !== "failed") {
    const message = `task ${taskId} asks nothing now (it is ${status} at ${step}); resume it without --answer to let it go on`;
    throw new WorkflowError("TASK_NOT_WAITING", message, { details: { taskId } });
  }
  if (request !== undefined && !waiting?.some(({ id }) => id === request)) {
    const open = waiting?.map(({ id }) => id).join(", ") || "nothing";
    throw new WorkflowError("STALE_RESUME", `request ${request} of task ${taskId} is not open; open now: ${open}`, {
      details: { taskId },
    });
  }
}

/** Notes where a new task's graph came from, so that resume finds it. Only this command line writes that: it is a file to run. */
async function rememberGraph(store: TaskStore, taskId: string, graph: string): Promise<void> {
  const isNew = (await store.head(taskId)) === null && (await store.firstEvent(taskId, "source")) === null;
  if (isNew) await store.append(taskId, 0, "source", { graph });
}

/** A readable id that is not taken: the workflow's name and 36^6 possibilities. */
export function newTaskId(workflow: string): string {
  const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  return `${workflow}-${Array.from({ length: 6 }, () => letters[randomInt(letters.length)]).join("")}`;
}

/** `--set field=value`: JSON where the field is no text. */
function readSettings(settings: readonly string[], graph: WorkflowGraph): Record<string, unknown> {
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
  if (options.json) process.stdout.write(`${JSON.stringify(task, null, 2)}\n`);
  else await printOutcome(detectTerminal(), graph, store, task, before, sameTask(options));
  return exitCodeOfStatus(task.status);
}
