import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { Command, END, INTERRUPT, MemorySaver, START, StateGraph } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { requireChatModel } from "../decision/chat-model.ts";
import type { OutputMode } from "../decision/providers.ts";
import type { SchemaScope, ToolArguments } from "../decision/schema.ts";
import { isWorkflowError, WorkflowError } from "../errors.ts";
import { systemClock, type Clock } from "../internal/clock.ts";
import { declareSecrets } from "../internal/redact.ts";
import type { Memories } from "../memory/memories.ts";
import { askedConsent } from "../people/consent-request.ts";
import { NAMED_REPLIES } from "../people/replies.ts";
import type { Execution } from "../state/execution.ts";
import type { Fields } from "../state/fields.ts";
import { viewOptions, type ViewOptions } from "../view/options.ts";
import { anyWorkflow, type AnyWorkflow, type Workflow } from "../workflow/define.ts";
import { ACT, dueNode, END_OF_TASK, targets } from "../workflow/next-step.ts";
import { childOf, workflowsWithin } from "../workflow/within.ts";
import { actNode } from "./act-node.ts";
import { cancelTask } from "./cancel.ts";
import { channelsOf, snapshotOf, type ChannelValues } from "./channels.ts";
import type { ChildRunner } from "./child.ts";
import type { ConsentOptions } from "./consent.ts";
import { InProcessStore } from "./in-process-store.ts";
import { leanWriters, NodeBody, Route } from "./node-body.ts";
import { answerable, canGoOn } from "./open-requests.ts";
import { outsideFor } from "./outside.ts";
import { STOP, UNTRUSTED, type Runtime } from "./runtime.ts";
import { stepNode } from "./step-node.ts";
import type { TaskStore } from "./store.ts";
import { WorkflowGraph, type WorkflowResult } from "./workflow-graph.ts";

/** What a workflow is compiled with. */
export interface CompileOptions {
  /** The model of every step that has none of its own; null for none, as `modelFromEnvironment` gives it. */
  readonly model?: BaseChatModel | null | undefined;
  /** The model that makes plans, in steps with `plan`; the step's or the workflow's model unless set. */
  readonly planner?: BaseChatModel | null | undefined;
  /** Where tasks live, with all guarantees: `sqliteStore(file)`. */
  readonly store?: TaskStore;
  /** Any LangGraph checkpointer in place of a store: checks hold within this process only. */
  readonly checkpointer?: BaseCheckpointSaver;
  /** What the model sees of the past; what its cache makes cheapest unless set. */
  readonly view?: Partial<ViewOptions>;
  /** Whose memories each prompt shows in short; prompts show none unless set. */
  readonly memories?: Memories;
  /**
   * Memories of workflows that are steps of this one, by their name. Once some are given, those that are not named
   * see none; without it, all of them share this one's.
   */
  readonly childMemories?: Readonly<Record<string, Memories>>;
  /** How models answer; unless set, the best way that each is known to have. */
  readonly outputMode?: OutputMode;
  /**
   * How much the schema of an answer says of tools' arguments: `full`, so that a strict output mode enforces them,
   * or `open`, which is many tokens less, since prompts have the tools' signatures and code checks the arguments.
   * `full` unless set, `open` where the answer is plain JSON.
   */
  readonly toolArguments?: ToolArguments;
  /**
   * For what the schema of an answer is made: for the `step` as it stands, so that a strict output mode lets a model
   * name only what is open; or once for the whole `workflow`, which a provider's cache finds again after a move
   * (OpenAI's and Anthropic's have the schema before the prompt), and code alone refuses what is not open. `step`
   * unless set; plain JSON has it behind the prompt, always for the step.
   */
  readonly schemaScope?: SchemaScope;
  /** The longest that one model answer may take, in milliseconds; 120,000 unless set. */
  readonly modelTimeoutMs?: number;
  /** Handed to code steps as `context.clients`. */
  readonly clients?: Readonly<Record<string, unknown>>;
  /** What may go to models without asking anybody, of the kinds of data that the workflow declares as sensitive. */
  readonly consent?: ConsentOptions;
  readonly clock?: Clock;
  /**
   * Names of environment variables whose values are never kept or shown: they are replaced in state,
   * prompt, log and errors. Names that end in KEY, TOKEN, SECRET, PASSWORD or CREDENTIALS need no mention.
   */
  readonly secrets?: readonly string[];
}

const DEFAULT_MODEL_TIMEOUT_MS = 120_000;
// Our own limits, which are in the state, end a task; LangGraph's must not come first.
const RECURSION_LIMIT = 100_000_000;

/**
 * Compiles a workflow to a LangGraph graph: one node a step, one node `act` for actions, and
 * conditional edges with explicit path maps that all ask the same pure router.
 *
 * Without a store and checkpointer, tasks live in memory and end with the process.
 *
 * @throws INVALID_OPTIONS.
 * @example
 * const graph = compile(ticket, { model, store: sqliteStore("tasks.db") });
 * const paused = await graph.invoke({ message: "network unstable" }, { configurable: { thread_id: "t-1" } });
 */
export function compile<const F extends Fields, N extends string, const I extends keyof F & string = never>(
  workflow: Workflow<F, N, I>,
  options: CompileOptions = {},
): WorkflowGraph<F, I> {
  return compileAny(anyWorkflow(workflow), options) as unknown as WorkflowGraph<F, I>;
}

/** `compile` for a workflow whose names are not known to the type checker. */
export function compileAny(workflow: AnyWorkflow, options: CompileOptions): WorkflowGraph {
  const runtime = runtimeOf(workflow, options);
  runtime.store.bind(workflow);
  // The builder's types follow literal node names, which only a definition's author knows.
  const builder = new StateGraph(channelsOf(workflow)) as unknown as DynamicBuilder;
  const route = new Route((values) => dueEdge(workflow, values));
  for (const [name, step] of Object.entries(workflow.steps)) {
    if (step.final) continue;
    builder.addNode(name, new NodeBody(name, stepNode(runtime, name, step)));
    builder.addConditionalEdges(name, route, pathMap(workflow, [name, ...targets(step)]));
  }
  builder.addNode(ACT, new NodeBody(ACT, actNode(runtime)));
  builder.addConditionalEdges(ACT, route, pathMap(workflow, Object.keys(workflow.steps)));
  builder.addEdge(START, workflow.initial);
  const plain = builder.compile({ name: workflow.name, description: workflow.goal });
  for (const node of Object.values(plain.nodes)) leanWriters(node);
  return new WorkflowGraph({ ...plain, config: { recursionLimit: RECURSION_LIMIT }, runtime } as never);
}

/** The same workflow with the same options, its tasks in another store. */
export function onStore(graph: WorkflowGraph, store: TaskStore): WorkflowGraph {
  return recompiled(graph, { store });
}

/**
 * The same workflow on the same store, its models shown another view.
 *
 * @throws INVALID_OPTIONS.
 */
export function withView(graph: WorkflowGraph, view: Partial<ViewOptions>): WorkflowGraph {
  return recompiled(graph, { view: { ...graph.runtime.view, ...view } });
}

function recompiled(graph: WorkflowGraph, changes: Pick<CompileOptions, "store" | "view">): WorkflowGraph {
  const { workflow, children: _children, endedChildren: _ended, ...options } = graph.runtime;
  return compileAny(workflow, { ...options, ...changes });
}

interface DynamicBuilder {
  addNode(name: string, body: NodeBody): void;
  addConditionalEdges(from: string, route: Route, paths: Readonly<Record<string, string>>): void;
  addEdge(from: string, to: string): void;
  compile(options: object): { readonly nodes: Readonly<Record<string, unknown>> };
}

/** The edge out of a node: the step that is due, by the record alone. Final steps have no body. */
function dueEdge(workflow: AnyWorkflow, values: ChannelValues): string {
  const due = dueNode(workflow, values.execution);
  return due === END_OF_TASK && workflow.steps[values.execution.step]?.final ? values.execution.step : due;
}

function pathMap(workflow: AnyWorkflow, steps: readonly string[]): Record<string, string> {
  const paths = steps.map((name): [string, string] => [name, workflow.steps[name]?.final ? END : name]);
  return Object.fromEntries([...paths, [ACT, ACT], [END_OF_TASK, END]]);
}

function runtimeOf(workflow: AnyWorkflow, options: CompileOptions): Runtime {
  if (options.store && options.checkpointer) {
    throw new WorkflowError(
      "INVALID_OPTIONS",
      "pass a store or a checkpointer, not both: a store brings its own checkpointer",
    );
  }
  const fault = options.memories?.faultIn(workflow);
  if (fault) throw new WorkflowError("INVALID_OPTIONS", fault);
  refuseUnknownChildren(workflow, options.childMemories ?? {});
  refuseWrappedModels(workflow, options);
  const view = viewOptions(options.view);
  declareSecrets(options.secrets ?? []);
  const clock = options.clock ?? systemClock;
  const store = options.store ?? new InProcessStore(options.checkpointer ?? new MemorySaver(), clock);
  const shared = { ...options, store, checkpointer: undefined };
  return {
    workflow,
    store,
    view,
    memories: options.memories,
    childMemories: options.childMemories,
    clock,
    model: options.model ?? undefined,
    planner: options.planner ?? undefined,
    outputMode: options.outputMode,
    toolArguments: options.toolArguments,
    schemaScope: options.schemaScope,
    modelTimeoutMs: options.modelTimeoutMs ?? DEFAULT_MODEL_TIMEOUT_MS,
    clients: options.clients ?? {},
    consent: options.consent ?? {},
    children: childRunners(workflow, shared),
    endedChildren: new Map(),
  };
}

function refuseWrappedModels(workflow: AnyWorkflow, { model, planner }: CompileOptions): void {
  if (model) requireChatModel("model", model);
  if (planner) requireChatModel("planner", planner);
  for (const [name, step] of Object.entries(workflow.steps)) {
    if (step.model) requireChatModel(`step ${name}, model`, step.model);
    if (step.plan?.planner) requireChatModel(`step ${name}, planner`, step.plan.planner);
  }
}

function childRunners(workflow: AnyWorkflow, options: CompileOptions): Record<string, ChildRunner> {
  const runners: Record<string, ChildRunner> = {};
  for (const [name, step] of Object.entries(workflow.steps)) {
    const child = childOf(step);
    if (!child) continue;
    const own = { memories: memoriesFor(child, options), childMemories: childMemoriesFor(child, options) };
    runners[name] = childRunner(compileAny(child, { ...options, ...own }), name);
  }
  return runners;
}

/** A child has its own memories, or else its parent's where its own state says whose they are. */
function memoriesFor(child: AnyWorkflow, { memories, childMemories }: CompileOptions): Memories | undefined {
  if (childMemories) return Object.hasOwn(childMemories, child.name) ? childMemories[child.name] : undefined;
  return memories?.canServe(child) ? memories : undefined;
}

/** Those that belong to the workflows within a child; an empty list still says that nothing is shared. */
function childMemoriesFor(child: AnyWorkflow, { childMemories }: CompileOptions): CompileOptions["childMemories"] {
  const names = childNames(child);
  return childMemories && Object.fromEntries(Object.entries(childMemories).filter(([name]) => names.has(name)));
}

/** A slip in a name would leave an agent without its memory. */
function refuseUnknownChildren(workflow: AnyWorkflow, childMemories: Readonly<Record<string, Memories>>): void {
  const names = childNames(workflow);
  const stranger = Object.keys(childMemories).find((name) => !names.has(name));
  if (stranger === undefined) return;
  const message = `childMemories names "${stranger}", which is no workflow within ${workflow.name}; there are: ${[...names].join(", ") || "none"}`;
  throw new WorkflowError("INVALID_OPTIONS", message, { details: { workflow: workflow.name, name: stranger } });
}

/** The names of the workflows that are steps of a workflow, however deep. */
function childNames(workflow: AnyWorkflow): ReadonlySet<string> {
  const [, ...within] = workflowsWithin(workflow);
  return new Set(within.map(({ name }) => name));
}

function childRunner(graph: WorkflowGraph, step: string): ChildRunner {
  const { store, workflow, clock } = graph.runtime;
  return {
    async cancel(taskId, by) {
      try {
        await cancelTask(graph.runtime, taskId, by);
      } catch (error) {
        if (!isWorkflowError(error, "UNKNOWN_TASK", "TASK_FINISHED", "TASK_CANCELLED")) throw error;
      }
    },
    async run(taskId, input, config, hasNews, untrusted) {
      const head = await store.head(taskId);
      const open = await answerable(store, taskId, head);
      // A consent may be needed no more: its model may be another one since.
      const mayGoOn = hasNews || open.some(askedConsent) || (await canGoOn(store, taskId, head, clock.now()));
      const waiting = open.length > 0 && !mayGoOn;
      const marked = untrusted ? { [UNTRUSTED]: true } : {};
      const own = {
        configurable: {
          thread_id: taskId,
          ...marked,
          ...outsideFor(config.configurable),
          [STOP]: config.configurable?.[STOP],
        },
        signal: config.signal,
        callbacks: config.callbacks,
      };
      if (!head) await graph.invoke(input, own as never).catch((error: unknown) => refusedInput(error, step, workflow));
      else if (!waiting && dueNode(workflow, head.execution) !== END_OF_TASK) await graph.invoke(null, own as never);
      let execution: Execution;
      for (;;) {
        const after = await store.head(taskId);
        if (!after) throw new WorkflowError("STEP_FAILED", `workflow ${workflow.name} in step ${step} did not start`);
        const requests = await answerable(store, taskId, after);
        if (requests.length > 0) return { kind: "waiting", requests };
        ({ execution } = after);
        if (execution.pending === null) break;
        // What it paused for was decided in the same moment, for another task.
        await graph.invoke(null, own as never);
      }
      const values = (await graph.getState({ configurable: { thread_id: taskId } })).values as ChannelValues;
      const status = execution.status === "completed" ? "completed" : "failed";
      return {
        kind: "ended",
        status,
        state: snapshotOf(workflow, values).state,
        error: execution.lastError?.message ?? null,
        usage: execution.usage,
        untrusted: execution.untrusted === true,
      };
    },
  };
}

/** Whoever runs the parent has given nothing wrong: its step has. */
function refusedInput(error: unknown, step: string, { name }: AnyWorkflow): never {
  if (!isWorkflowError(error, "INVALID_INPUT")) throw error;
  const message = `workflow ${name} refused the input of step ${step}: ${error.message}`;
  throw new WorkflowError("STEP_FAILED", message, { cause: error });
}

/** What a person says about a call that waits for approval. A plain "approve" or "reject" does too. */
export type Verdict =
  | { readonly type: "approve" }
  | { readonly type: "reject"; readonly message?: string }
  | { readonly type: "edit"; readonly args: Readonly<Record<string, unknown>> };

/**
 * Makes the resume value for the one request that a paused result shows. It names the request, so it
 * may come late, twice or in any order: it can only ever answer what was shown.
 *
 * @param reply the text for a question; "approve", "reject" or a verdict for an approval.
 * @throws TASK_NOT_WAITING or AMBIGUOUS_REPLY.
 * @example await graph.invoke(answer(paused, "P1"), config)
 */
export function answer<F extends Fields>(paused: WorkflowResult<F>, reply: string | Verdict): Command {
  const open = paused[INTERRUPT]?.[0]?.value?.requests ?? [];
  const [only] = open;
  if (!only) throw new WorkflowError("TASK_NOT_WAITING", "this result waits for nothing; read the task again");
  if (open.length > 1) {
    throw new WorkflowError(
      "AMBIGUOUS_REPLY",
      `${open.length} requests are open; answer by id: new Command({ resume: { [id]: reply } })`,
      { details: { open } },
    );
  }
  return new Command({ resume: { [NAMED_REPLIES]: [{ id: only.id, shown: only.digest, reply }] } });
}
