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
import { runInterruptibly } from "./interruptible.ts";
import { printOutcome } from "./outcome.ts";
import { detectTerminal } from "./terminal.ts";

export interface CommonOptions {
  readonly db?: string;
  readonly json?: boolean;
}
export interface RunCommandOptions extends CommonOptions {
  readonly task?: string;
  readonly message?: string;
  readonly set?: readonly string[];
  readonly chat?: boolean;
}
export interface ResumeCommandOptions extends CommonOptions {
  readonly answer?: string;
  readonly request?: string;
  readonly graph?: string;
  readonly chat?: boolean;
}

/** `statecard run`: starts a task and runs it to its first pause or its end. */
export async function runCommand(name: string, options: RunCommandOptions): Promise<number> {
  const store = sqliteStore(options.db);
  const graph = await loadGraph(name, store);
  const taskId = options.task ?? newTaskId(graph.runtime.workflow.name);
  const input = {
    ...readSettings(options.set ?? [], graph),
    ...(options.message === undefined ? {} : { message: options.message }),
  };
  if (options.chat) {
    if (options.json) throw usage("--chat converses with a person and --json with a program; choose one");
    await rememberGraph(store, taskId, name);
    return chat({ graph, store, taskId, start: input });
  }
  await rememberGraph(store, taskId, name);
  await runInterruptibly(graph, taskId, input);
  return report(graph, store, taskId, options, { state: {}, revision: 0 });
}

/** `statecard resume`: records an answer where one is given, and lets the task go on. */
export async function resumeCommand(taskId: string, options: ResumeCommandOptions): Promise<number> {
  const store = storeForReading(options.db);
  const task = await describeTask(store, taskId);
  const graph = await graphOfTask(store, taskId, task.workflow, options.graph);
  if (options.request !== undefined && options.answer === undefined)
    throw usage("--request names what --answer answers; give both");
  if (options.answer !== undefined) {
    const resume = options.request === undefined ? options.answer : { [options.request]: options.answer };
    if (!task.waiting && task.status !== "completed" && task.status !== "failed") {
      throw new WorkflowError(
        "TASK_NOT_WAITING",
        `task ${taskId} asks nothing now (it is ${task.status} at ${task.step}); resume it without --answer to let it go on`,
        { details: { taskId } },
      );
    }
    if (options.request !== undefined && !task.waiting?.some((request) => request.id === options.request)) {
      const open = task.waiting?.map((request) => request.id).join(", ") || "nothing";
      throw new WorkflowError(
        "STALE_RESUME",
        `request ${options.request} of task ${taskId} is not open; open now: ${open}`,
        { details: { taskId } },
      );
    }
    await runInterruptibly(graph, taskId, new Command({ resume }));
  } else if (task.status === "completed") {
    throw new WorkflowError(
      "TASK_FINISHED",
      `task ${taskId} was completed; there is nothing to resume; start a new one with: statecard run ${task.workflow}`,
      { details: { taskId } },
    );
  } else if (!task.waiting) {
    await runInterruptibly(graph, taskId, null);
  }
  if (options.chat) return chat({ graph, store, taskId, start: null });
  return report(graph, store, taskId, options, task);
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

async function report(
  graph: WorkflowGraph,
  store: TaskStore,
  taskId: string,
  options: CommonOptions,
  before: Pick<TaskDescription, "state" | "revision">,
): Promise<number> {
  const task = await describeTask(store, taskId);
  if (options.json) process.stdout.write(`${JSON.stringify(task, null, 2)}\n`);
  else await printOutcome(detectTerminal(), graph, store, task, before);
  return exitCodeOfStatus(task.status);
}
