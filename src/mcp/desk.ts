import { briefTask } from "../compile/brief-task.ts";
import { OUTSIDE_AGENTS, withheldFromAgents } from "../compile/consent.ts";
import { describeRequests, describeTask, standingOf } from "../compile/describe.ts";
import { goOnOutside, propose } from "../compile/propose.ts";
import { replyTo, type ReplyWords } from "../compile/reply-to.ts";
import { newTaskId } from "../compile/task-id.ts";
import type { TaskStore } from "../compile/store.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { decisionSchema } from "../decision/schema.ts";
import { shorten } from "../internal/json.ts";
import { renderBrief } from "../view/brief.ts";
import { resolveOptions } from "../view/options.ts";
import { stepLines } from "../view/state-block.ts";
import { WITHHELD_NOTE } from "../view/withhold.ts";
import { ACT, dueNode, isModelStep } from "../workflow/next-step.ts";
import { phaseOf } from "../workflow/plan.ts";

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
};

/** Where an agent outside of this program works on tasks. */
export class TaskDesk {
  private readonly options: DeskOptions & { readonly clientName: () => string | undefined };

  constructor(options: DeskOptions & { readonly clientName: () => string | undefined }) {
    this.options = options;
  }

  async list(limit = LISTED): Promise<DeskAnswer> {
    const { store } = this.options;
    const rows = await store.tasks({ limit });
    const tasks = await Promise.all(
      rows.map(async ({ taskId, execution, updatedAt, waiting }) => {
        const { status } = await standingOf(store, taskId, execution, waiting);
        const [request] = await describeRequests(store, taskId, waiting);
        return {
          task: taskId,
          workflow: execution.workflow,
          step: execution.step,
          status,
          updatedAt: new Date(updatedAt).toISOString(),
          ...(request ? { waitsFor: `${request.kind}: ${shorten(request.question, 200)}` } : {}),
        };
      }),
    );
    const lines = tasks.map(
      ({ task, workflow, step, status, waitsFor }) =>
        `${task}  ${workflow}  ${status} at ${step}${waitsFor ? `  ${waitsFor}` : ""}`,
    );
    return { text: lines.join("\n") || "no tasks", data: { tasks } };
  }

  async read(taskId: string): Promise<DeskAnswer> {
    return this.shown(taskId, await this.graph(taskId));
  }

  async propose(taskId: string, revision: number, decision: unknown): Promise<DeskAnswer> {
    const graph = await this.graph(taskId);
    await propose(graph, taskId, { ...this.run(), revision, decision });
    return this.shown(taskId, graph);
  }

  async answer(taskId: string, id: string | undefined, text: string): Promise<DeskAnswer> {
    const { store } = this.options;
    const graph = await this.graph(taskId);
    const task = await describeTask(store, taskId);
    const reply = await replyTo(store, task, { verb: "answer", text }, id, WORDS);
    await goOnOutside(graph, taskId, reply, this.run());
    return this.shown(taskId, graph);
  }

  async goOn(taskId: string): Promise<DeskAnswer> {
    const graph = await this.graph(taskId);
    await goOnOutside(graph, taskId, null, this.run());
    return this.shown(taskId, graph);
  }

  async start(
    id: string,
    message: string | undefined,
    fields: Readonly<Record<string, unknown>> = {},
  ): Promise<DeskAnswer> {
    const graph = await this.options.graphNamed(id);
    const taskId = newTaskId(graph.runtime.workflow.name);
    await this.options.remember(taskId, id);
    await goOnOutside(graph, taskId, { ...fields, ...(message === undefined ? {} : { message }) }, this.run());
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
    const withheld = await withheldFromAgents(graph.runtime, taskId);
    // Whoever is to decide needs as much of the latest as the workflow's model would get.
    const latestTokens = resolveOptions(view).maxResultTokens;
    const brief = await briefTask(store, taskId, workflow, { withheld, latestTokens });
    const note =
      withheld.length > 0
        ? `\nNot shown: ${withheld.join(", ")}. ${WITHHELD_NOTE} A person can allow it: statecard consent allow ${workflow.name} --to ${OUTSIDE_AGENTS}`
        : "";
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
