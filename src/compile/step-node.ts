import { isGraphBubbleUp, type LangGraphRunnableConfig } from "@langchain/langgraph";
import { decide } from "../decision/decide.ts";
import { shapeDecision } from "../decision/parse.ts";
import { isWorkflowError, WorkflowError } from "../errors.ts";
import { faultPoint } from "../internal/fault-point.ts";
import { frozenCopy, isPlainObject, shorten } from "../internal/json.ts";
import { redact, redactDeep } from "../internal/redact.ts";
import { NO_USAGE, type Execution, type Observation, type Usage } from "../state/execution.ts";
import type { Refusal } from "../state/patch.ts";
import { assignmentOf } from "../view/assignment.ts";
import { applyDecision, MAX_ITEMS, reachedLimit, startChild, type Update } from "../workflow/advance.ts";
import { phaseOf } from "../workflow/plan.ts";
import { fail, FREE, type Decision, type DecisionCost } from "../workflow/record.ts";
import type { Snapshot } from "../workflow/define.ts";
import type { RuntimeMap, RuntimeStep } from "../workflow/step.ts";
import { outputOf } from "./act-map.ts";
import { snapshotOf, type ChannelValues } from "./channels.ts";
import { keepFacts } from "./facts.ts";
import { rememberedFor } from "./remembered.ts";
import { decideOutside, outsideOf } from "./outside.ts";
import { enter, SPENT, STREAM_REPLIES, TASK_DECISIONS, UNTRUSTED, type Runtime } from "./runtime.ts";
import type { Lease } from "./store.ts";
import { viewOf } from "./view-of.ts";

/**
 * The body of a step: makes one decision and commits it in this superstep. An action (a question, a
 * child workflow) is only recorded; the shared action node carries it out.
 */
export function stepNode(runtime: Runtime, name: string, step: RuntimeStep) {
  return async (values: ChannelValues, config: LangGraphRunnableConfig): Promise<Record<string, unknown>> => {
    const lease = enter(runtime, name, values.execution, config);
    const isCode = step.run !== undefined || step.map !== undefined || step.workflow !== undefined;
    const { workflow, memories } = runtime;
    const owner = () => ({ taskId: lease.taskId, state: snapshotOf(workflow, values).state });
    const memory = isCode || !memories ? [] : await rememberedFor(memories, owner());
    const isUntrusted =
      config.configurable?.[UNTRUSTED] === true ||
      // What an agent outside has read nobody knows.
      (!isCode && outsideOf(config.configurable) !== null) ||
      (runtime.workflow.untrustedMessages && values.message !== null) ||
      (memory.length > 0 && runtime.memories?.isTrusted !== true);
    const limited: unknown = config.configurable?.[TASK_DECISIONS];
    const snapshot = namedSnapshot(runtime, values, lease, {
      ...(isUntrusted ? { untrusted: true } : {}),
      ...(typeof limited === "number" ? { maxDecisions: limited } : {}),
    });
    // A newer message replaces the latest observation; else that stays the latest.
    const observation = values.message === null ? null : messageOf(runtime, snapshot, values.message);
    const limit = reachedLimit(runtime.workflow, snapshot.execution);
    if (limit) return write({ changes: {}, execution: fail(snapshot.execution, limit, FREE, observation) }, values);
    if (step.workflow) {
      const child = step.workflow.name;
      const input = await guardUserCode(name, () => step.input?.(snapshot.state as never) ?? {});
      return write(startChild(snapshot, { workflow: child, input: redactDeep({ ...input }) }, observation), values);
    }
    const items = step.map && (await mapItems(name, step.map, snapshot));
    if (items && step.map?.workflow && items.length > 0) {
      const child = { workflow: step.map.workflow.name, inputs: items };
      return write(startChild(snapshot, child, observation), values);
    }
    faultPoint("before-decision");
    const decided = items
      ? { ok: true as const, decision: mapDecision(runtime, name, snapshot, items), cost: FREE }
      : step.run
        ? await runCode(runtime, name, step.run, snapshot, observation, config)
        : await askTheModel(runtime, step, { snapshot, observation, memory }, lease, config);
    if (!decided.ok) return write(refused(snapshot, decided.refusal, decided.cost, observation), values);
    faultPoint("after-decision");
    const number = snapshot.execution.decisions + 1;
    const applied = applyDecision(runtime.workflow, snapshot, decided.decision, {
      number,
      observation,
      cost: decided.cost,
    });
    return write(applied.ok ? applied.update : refused(snapshot, applied.refusal, decided.cost, observation), values);
  };
}

function messageOf(runtime: Runtime, snapshot: Snapshot, text: string): Observation {
  const message: Observation = { kind: "message", text, at: runtime.clock.now() };
  return keepFacts(runtime, snapshot, message, snapshot.execution.observation);
}

/** The inputs of a map step, one an item. */
async function mapItems(name: string, map: RuntimeMap, { state }: Snapshot) {
  return guardUserCode(name, () => {
    const items = map.over(state as never);
    if (!Array.isArray(items) || items.length > MAX_ITEMS) {
      const found = Array.isArray(items) ? `${items.length} items` : "no list";
      throw new Error(`map.over gave ${found}; it has to give a list of at most ${MAX_ITEMS}`);
    }
    return items.map((item, index) => redactDeep({ ...map.input(item as never, index, state as never) }));
  });
}

function mapDecision(
  { workflow }: Runtime,
  name: string,
  { state }: Snapshot,
  items: readonly Record<string, unknown>[],
): Decision {
  const tool = workflow.steps[name]?.map?.tool ?? "";
  if (items.length === 0) return outputOf(workflow, name, state, []);
  return { because: `${tool} for ${items.length} items`, calls: items.map((args) => ({ tool, args })) };
}

function namedSnapshot(
  runtime: Runtime,
  values: ChannelValues,
  lease: Lease,
  marks: Pick<Execution, "untrusted" | "maxDecisions">,
): Snapshot {
  const { execution, state } = snapshotOf(runtime.workflow, values);
  return { state, execution: { ...execution, taskId: lease.taskId, ...marks } };
}

/** The node's return: the changed fields, the record, and the message taken. */
function write(update: Update, values: ChannelValues): Record<string, unknown> {
  const taken = values.message === null ? {} : { message: null };
  return { ...update.changes, ...taken, execution: update.execution };
}

function refused(snapshot: Snapshot, refusal: Refusal, cost: DecisionCost, observation: Observation | null): Update {
  const { execution } = snapshot;
  const message = `step ${execution.step}: ${refusal.reason}`;
  return {
    changes: {},
    execution: fail(execution, { code: refusal.code, message, step: execution.step }, cost, observation),
  };
}

type Outcome =
  | { ok: true; decision: Decision; cost: DecisionCost }
  | { ok: false; refusal: Refusal; cost: DecisionCost };

async function runCode(
  runtime: Runtime,
  name: string,
  run: NonNullable<RuntimeStep["run"]>,
  snapshot: Snapshot,
  observation: Observation | null,
  config: LangGraphRunnableConfig,
): Promise<Outcome> {
  const { execution } = snapshot;
  const result = await guardUserCode(name, () =>
    run(snapshot.state as never, {
      taskId: execution.taskId,
      step: name,
      revision: execution.revision,
      observation: frozenCopy(observation ?? execution.observation),
      clients: runtime.clients,
      clock: runtime.clock,
      signal: config.signal,
      config,
    }),
  );
  const shaped = isPlainObject(result ?? {}) ? shapeDecision(redactDeep(result ?? {})) : null;
  if (!shaped?.ok) {
    const returned = shaped ? shaped.refusal.reason : `it returned ${shorten(String(result), 60)}`;
    throw new WorkflowError(
      "STEP_FAILED",
      `step ${name}: ${returned}; return plain data: {patch, clear, next, ask, reply, because}`,
    );
  }
  return { ok: true, decision: shaped.decision, cost: FREE };
}

/** Runs a user's function; whatever it throws says in which step it was. */
async function guardUserCode<T>(step: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isGraphBubbleUp(error) || isWorkflowError(error) || (error instanceof Error && error.name === "AbortError"))
      throw error;
    const said = shorten(redact(error instanceof Error ? error.message : String(error)), 500);
    throw new WorkflowError(
      "STEP_FAILED",
      `step ${step} threw: ${said}; the task stays at this step: mend it and resume`,
      { cause: error, details: { step } },
    );
  }
}

/** What a prompt is made from. */
interface Shown {
  readonly snapshot: Snapshot;
  readonly observation: Observation | null;
  /** Lines of the memory block. */
  readonly memory: readonly string[];
}

async function askTheModel(
  runtime: Runtime,
  step: RuntimeStep,
  { snapshot, observation, memory }: Shown,
  lease: Lease,
  config: LangGraphRunnableConfig,
): Promise<Outcome> {
  const outside = outsideOf(config.configurable);
  if (outside) return decideOutside(runtime, outside, snapshot, lease);
  const { execution } = snapshot;
  const phase = phaseOf(runtime.workflow, execution.step, snapshot.state);
  const planner = phase?.kind === "plan" ? (step.plan?.planner ?? runtime.planner) : undefined;
  const model = planner ?? step.model ?? runtime.model;
  if (!model) {
    throw new WorkflowError(
      "MISSING_MODEL",
      `step ${execution.step} needs a model: pass compile(workflow, { model }) or give the step its own`,
    );
  }
  const view = await viewOf(runtime, snapshot, observation, assignmentOf(phase), memory);
  const streaming = config.configurable?.[STREAM_REPLIES] === true;
  const { outputMode, toolArguments, modelTimeoutMs, clock, workflow, store } = runtime;
  const say = (delta: string) => config.writer?.({ type: "reply", delta });
  // What a guard may mend or send back is told when it has passed.
  const isHeld = streaming && Boolean(step.guards?.length);
  const decided = await decide({
    workflow,
    snapshot,
    phase,
    model,
    view,
    clock,
    config,
    timeoutMs: modelTimeoutMs,
    spent: spentBefore(config, execution),
    ...(outputMode ? { mode: outputMode } : {}),
    ...(toolArguments ? { toolArguments } : {}),
    ...(streaming ? { onReply: say, holdReply: isHeld } : {}),
    onDoubt: (doubt) =>
      store.append(lease.taskId, execution.revision, "doubted", { step: execution.step, reason: redact(doubt) }),
    onRefusal: (refusal, answer) =>
      store.append(lease.taskId, execution.revision, "refused", {
        step: execution.step,
        ...refusal,
        answer: shorten(answer, 2000),
      }),
  });
  if (isHeld && decided.ok && decided.decision.reply) say(decided.decision.reply);
  return decided;
}

/** What answers cost that were refused at this revision in an earlier run, before a call that failed. */
function spentBefore(config: LangGraphRunnableConfig, execution: Execution): Usage {
  const spent = config.configurable?.[SPENT] as { revision: number; usage: Usage } | undefined;
  return spent?.revision === execution.revision ? spent.usage : NO_USAGE;
}
