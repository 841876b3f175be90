import { briefTask, withoutHidden, type HiddenParts } from "../compile/brief-task.ts";
import { canStart, taskExists } from "../compile/admit-input.ts";
import { allowingCommand, OUTSIDE_AGENTS, withheldFromAgents } from "../compile/consent.ts";
import { describeRow, describeTask, type WaitingRequest } from "../compile/describe.ts";
import { isoTime } from "../compile/iso-times.ts";
import { goOnOutside, propose } from "../compile/propose.ts";
import { replyTo, type ReplyWords } from "../compile/reply-to.ts";
import { checkTaskId, newTaskId } from "../compile/task-id.ts";
import type { TaskRow, TaskStore } from "../compile/store.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { decisionSchema } from "../decision/schema.ts";
import { shorten } from "../internal/json.ts";
import { askedConsent } from "../people/consent-request.ts";
import { renderBrief } from "../view/brief.ts";
import { resolveOptions } from "../view/options.ts";
import { stepLines } from "../view/state-block.ts";
import { WITHHELD_NOTE } from "../view/withhold.ts";
import { ACT, dueNode, isModelStep } from "../workflow/next-step.ts";
import { phaseOf } from "../workflow/plan.ts";
import { workflowsWithin } from "../workflow/within.ts";

/** What the desk works with. */
export interface DeskOptions {
  readonly store: TaskStore;
  /** Whom the log names as deciding; what the client calls itself unless set. */
  readonly agent?: string;
  /** The graph of a task. */
  readonly graphOf: (taskId: string, workflow: string) => Promise<WorkflowGraph>;
  /** A graph by its id, to start a task of. */
  readonly graphNamed: (id: string) => Promise<WorkflowGraph>;
  /** Notes where a new task's graph came from. */
  readonly remember: (taskId: string, graph: string) => Promise<void>;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
}

/** What a task is started with. */
export interface NewTask {
  readonly message?: string | undefined;
  /** Input fields of the workflow. */
  readonly fields?: Readonly<Record<string, unknown>> | undefined;
  /** Its id; one is made up unless set. */
  readonly task?: string | undefined;
}

/** What a tool gives back: for reading, and as data. */
export interface DeskAnswer {
  readonly text: string;
  readonly data: object;
}

const LISTED = 20;
const MAX_NAME = 64;

const WORDS: ReplyWords = {
  verb: (verb) => (verb === "answer" ? "answer_request" : `${verb}, by a person`),
  request: "request",
  tellsQuestions: false,
};

/** Where an agent outside of this program works on tasks. */
export class TaskDesk {
  private readonly options: DeskOptions & { readonly clientName: () => string | undefined };

  constructor(options: DeskOptions & { readonly clientName: () => string | undefined }) {
    this.options = options;
  }

  async list(limit = LISTED): Promise<DeskAnswer> {
    const { store } = this.options;
    const found = await store.tasks({ limit: limit + 1 });
    const rows = found.slice(0, limit);
    const more = found.length > limit;
    const tasks = await Promise.all(
      rows.map(async (row) => {
        const { taskId, workflow, step, status, updatedAt, waiting } = await describeRow(store, row);
        const [request] = waiting;
        return {
          task: taskId,
          workflow,
          step,
          status,
          updatedAt: isoTime(updatedAt),
          ...(request ? { waitsFor: await this.waitsFor(row, request) } : {}),
        };
      }),
    );
    const lines = tasks.map(
      ({ task, workflow, step, status, waitsFor }) =>
        `${task}  ${workflow}  ${status} at ${step}${waitsFor ? `  ${waitsFor}` : ""}`,
    );
    const text = [...lines, ...(more ? ["There are more; ask with a higher limit."] : [])].join("\n");
    return { text: text || "no tasks", data: { tasks, ...(more ? { more } : {}) } };
  }

  async read(taskId: string): Promise<DeskAnswer> {
    return this.shown(taskId, await this.graph(taskId));
  }

  async propose(taskId: string, revision: number, decision: unknown): Promise<DeskAnswer> {
    const graph = await this.graph(taskId);
    return this.after(graph, taskId, () => propose(graph, taskId, { ...this.run(), revision, decision }));
  }

  async answer(taskId: string, id: string | undefined, text: string): Promise<DeskAnswer> {
    const { store } = this.options;
    const graph = await this.graph(taskId);
    const task = await describeTask(store, taskId);
    const reply = await replyTo(store, task, { verb: "answer", text }, id, WORDS);
    return this.after(graph, taskId, () => goOnOutside(graph, taskId, reply, this.run()));
  }

  async goOn(taskId: string): Promise<DeskAnswer> {
    const graph = await this.graph(taskId);
    return this.after(graph, taskId, () => goOnOutside(graph, taskId, null, this.run()));
  }

  /** @throws TASK_EXISTS where the id is taken. */
  async start(id: string, { message, fields = {}, task }: NewTask): Promise<DeskAnswer> {
    const graph = await this.options.graphNamed(id);
    const taskId = task === undefined ? newTaskId(graph.runtime.workflow.name) : checkTaskId(task);
    if (await this.options.store.look(taskId)) throw taskExists(taskId);
    const input = { ...fields, ...(message === undefined ? {} : { message }) };
    if (canStart(graph.runtime.workflow, input)) await this.options.remember(taskId, id);
    return this.after(graph, taskId, () => goOnOutside(graph, taskId, input, this.run()));
  }

  /** What a task waits for; only of what kind that is where the agent may not see all of its workflow's data. */
  private async waitsFor({ taskId, execution: { workflow } }: TaskRow, request: WaitingRequest): Promise<string> {
    if (!askedConsent(request)) {
      const graph = await this.options.graphOf(taskId, workflow).catch(() => null);
      // Of a workflow that is not at hand nobody knows what it declares.
      const { withheld, hidesInner } = graph ? await hiddenParts(graph, taskId) : { withheld: [], hidesInner: true };
      if (withheld.length > 0 || hidesInner) return request.kind;
    }
    return `${request.kind}: ${shorten(request.question, 200)}`;
  }

  /** The task after some work on it. What that fails with is told without what the agent may not see. */
  private async after(graph: WorkflowGraph, taskId: string, work: () => Promise<unknown>): Promise<DeskAnswer> {
    try {
      await work();
    } catch (error) {
      const { store } = this.options;
      throw await withoutHidden(store, taskId, graph.runtime.workflow, error, await hiddenParts(graph, taskId));
    }
    return this.shown(taskId, graph);
  }

  private async graph(taskId: string): Promise<WorkflowGraph> {
    const { workflow } = await describeTask(this.options.store, taskId);
    return this.options.graphOf(taskId, workflow);
  }

  private run() {
    const { agent, clientName, signal } = this.options;
    const name = (agent ?? clientName() ?? "").replaceAll(/\p{C}/gu, "").trim().slice(0, MAX_NAME);
    return { agent: name || "unnamed", signal };
  }

  /** The brief, and what a decision has to be like where one is due. */
  private async shown(taskId: string, graph: WorkflowGraph): Promise<DeskAnswer> {
    const { store } = this.options;
    const { workflow, view } = graph.runtime;
    // Before the brief: where the task moves on in between, a decision about the brief is for a revision that is gone.
    const looked = await store.look(taskId);
    const { withheld, hidesInner, hiding } = await hiddenParts(graph, taskId);
    // Whoever is to decide needs as much of the latest as the workflow's model would get.
    const latestTokens = resolveOptions(view).maxResultTokens;
    const brief = await briefTask(store, taskId, workflow, { withheld, hidesInner, latestTokens });
    const note = noteOf(hiding, taskId);
    const execution = looked?.execution;
    const step = execution && workflow.steps[execution.step];
    if (!execution || !step || looked.quarantine !== null) {
      return { text: `${renderBrief(brief)}${note}`, data: { brief } };
    }
    const due = dueNode(workflow, execution);
    const isDue = (due === execution.step || execution.status === "failed") && isModelStep(step);
    if (!isDue) {
      const hint =
        due === ACT && brief.requests.length === 0
          ? "\nIt was stopped in the middle: continue_task lets it go on."
          : "";
      return {
        text: `${renderBrief(brief)}${note}${hint}`,
        data: { brief, revision: execution.revision, decisionIsDue: false },
      };
    }
    const phase = phaseOf(workflow, execution.step, looked.state);
    const { schema } = decisionSchema(workflow, execution.step, looked.state, phase?.kind ?? null, "open");
    const text = [
      // The step's own lines say what to do there.
      `${renderBrief({ ...brief, instructions: "" })}${note}`,
      "",
      `A decision is due, for revision ${execution.revision}:`,
      ...stepLines(workflow, execution.step),
      `JSON schema of the decision: ${JSON.stringify(schema)}`,
    ].join("\n");
    return { text, data: { brief, revision: execution.revision, decisionIsDue: true, schema } };
  }
}

/** What agents outside may not be shown of a task, with the workflows in it and within it that have something to hide. */
async function hiddenParts(
  { runtime }: WorkflowGraph,
  taskId: string,
): Promise<Required<HiddenParts> & { readonly hiding: readonly { workflow: string; kinds: readonly string[] }[] }> {
  const all = await Promise.all(
    workflowsWithin(runtime.workflow).map(async (workflow) => ({
      workflow: workflow.name,
      kinds: await withheldFromAgents({ ...runtime, workflow }, taskId),
    })),
  );
  const [own, ...inner] = all;
  return {
    withheld: own?.kinds ?? [],
    hidesInner: inner.some(({ kinds }) => kinds.length > 0),
    hiding: all.filter(({ kinds }) => kinds.length > 0),
  };
}

/** What is not shown, and what a person enters to allow it; nothing where all is shown. */
function noteOf(hiding: Awaited<ReturnType<typeof hiddenParts>>["hiding"], taskId: string): string {
  if (hiding.length === 0) return "";
  const kinds = [...new Set(hiding.flatMap((each) => each.kinds))].join(", ");
  const commands = hiding.map(({ workflow }) => `${allowingCommand(workflow, taskId)} --to ${OUTSIDE_AGENTS}`);
  return `\nNot shown: ${kinds}. ${WITHHELD_NOTE} A person can allow it: ${commands.join("; ")}`;
}
