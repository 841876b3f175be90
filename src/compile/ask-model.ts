import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import { decide, type Decided } from "../decision/decide.ts";
import { WorkflowError } from "../errors.ts";
import { shorten } from "../internal/json.ts";
import { redact } from "../internal/redact.ts";
import { NO_USAGE, type Execution, type Usage } from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import { phaseOf } from "../workflow/plan.ts";
import type { Snapshot } from "../workflow/define.ts";
import type { RuntimeStep } from "../workflow/step.ts";
import { SPENT, STREAM_REPLIES, type Runtime } from "./runtime.ts";
import type { Lease } from "./store.ts";
import { viewOf, type Shown } from "./view-of.ts";

/**
 * The model that makes a step's next decision.
 *
 * @throws MISSING_MODEL.
 */
export function modelFor(runtime: Runtime, { execution, state }: Snapshot): BaseChatModel {
  const model = decidingModel(runtime, execution.step, state);
  if (model) return model;
  throw new WorkflowError(
    "MISSING_MODEL",
    `step ${execution.step} needs a model: pass compile(workflow, { model }) or give the step its own`,
  );
}

/** The model that a step would ask next in a state; undefined where neither it nor the graph has one. Pure. */
export function decidingModel(
  { workflow, model, planner }: Pick<Runtime, "workflow" | "model" | "planner">,
  stepName: string,
  state: State,
): BaseChatModel | undefined {
  const step = workflow.steps[stepName];
  const isPlanning = phaseOf(workflow, stepName, state)?.kind === "plan";
  return (isPlanning ? (step?.plan?.planner ?? planner) : undefined) ?? step?.model ?? model;
}

/** Shows a model its step and the task, and takes its decision. What is refused on the way is logged. */
export async function askTheModel(
  runtime: Runtime,
  step: RuntimeStep,
  shown: Omit<Shown, "model" | "phase">,
  lease: Lease,
  config: LangGraphRunnableConfig,
): Promise<Decided> {
  const { snapshot } = shown;
  const { execution } = snapshot;
  const phase = phaseOf(runtime.workflow, execution.step, snapshot.state);
  const model = modelFor(runtime, snapshot);
  const { view, hide } = await viewOf(runtime, { ...shown, model, phase });
  const streaming = config.configurable?.[STREAM_REPLIES] === true;
  const { outputMode, toolArguments, schemaScope, modelTimeoutMs, clock, workflow, store } = runtime;
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
    ...(hide ? { hide } : {}),
    ...(outputMode ? { mode: outputMode } : {}),
    ...(toolArguments ? { toolArguments } : {}),
    ...(schemaScope ? { schemaScope } : {}),
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
