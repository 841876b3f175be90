import { isGraphBubbleUp, type LangGraphRunnableConfig } from "@langchain/langgraph";
import { shapeDecision } from "../decision/parse.ts";
import { isWorkflowError, WorkflowError } from "../errors.ts";
import { faultPoint } from "../internal/fault-point.ts";
import { frozenCopy, isPlainObject, shorten } from "../internal/json.ts";
import { redact, redactDeep } from "../internal/redact.ts";
import type { Execution, Observation } from "../state/execution.ts";
import type { Refusal } from "../state/patch.ts";
import { applyDecision, MAX_ITEMS, reachedLimit, startChild, type Update } from "../workflow/advance.ts";
import { toolsOf } from "../workflow/calls.ts";
import { awaitConsent } from "../workflow/consent.ts";
import { fail, FREE, type Decision, type DecisionCost } from "../workflow/record.ts";
import type { Snapshot } from "../workflow/define.ts";
import type { RuntimeMap, RuntimeStep } from "../workflow/step.ts";
import { outputOf } from "./act-map.ts";
import { askTheModel, modelFor } from "./ask-model.ts";
import { snapshotOf, type ChannelValues } from "./channels.ts";
import { exposureTo, requireNeeded } from "./consent.ts";
import { keepFacts } from "./facts.ts";
import { rememberedFor } from "./remembered.ts";
import { decideOutside, outsideOf } from "./outside.ts";
import { enter, TASK_DECISIONS, UNTRUSTED, type Runtime } from "./runtime.ts";
import type { Lease } from "./store.ts";

/**
 * The body of a step: makes one decision and commits it in this superstep. An action (a question, a
 * child workflow) is only recorded; the shared action node carries it out.
 */
export function stepNode(runtime: Runtime, name: string, step: RuntimeStep) {
  return async (values: ChannelValues, config: LangGraphRunnableConfig): Promise<Record<string, unknown>> => {
    const lease = enter(runtime, name, values.execution, config);
    const isCode = step.run !== undefined || step.map !== undefined || step.workflow !== undefined;
    // Who decides in place of the model, where somebody does.
    const outside = isCode ? null : outsideOf(config.configurable);
    const { workflow, memories } = runtime;
    const owner = () => ({ taskId: lease.taskId, state: snapshotOf(workflow, values).state });
    const memory = isCode || !memories ? [] : await rememberedFor(memories, owner());
    const isUntrusted =
      config.configurable?.[UNTRUSTED] === true ||
      // What an agent outside has read nobody knows.
      outside !== null ||
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
    const asksModel = !isCode && outside === null;
    const exposed = asksModel ? await exposureTo(runtime, lease.taskId, modelFor(runtime, snapshot)) : null;
    if (exposed?.needed) return write(awaitConsent(snapshot, exposed.needed, observation), values);
    if (exposed) requireNeeded(workflow, lease.taskId, exposed);
    const withheld = exposed?.withheld ?? [];
    faultPoint("before-decision");
    const decided = items
      ? { ok: true as const, decision: mapDecision(runtime, name, snapshot, items), cost: FREE }
      : step.run
        ? await runCode(runtime, name, step.run, snapshot, observation, config)
        : outside
          ? await decideOutside(runtime, outside, snapshot, lease)
          : await askTheModel(runtime, step, { snapshot, observation, memory, withheld }, lease, config);
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
    const calls = toolsOf(runtime.workflow, name).length > 0 ? "calls, " : "";
    throw new WorkflowError(
      "STEP_FAILED",
      `step ${name}: ${returned}; return plain data: {patch, clear, next, ${calls}ask, reply, because}`,
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
