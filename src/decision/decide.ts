import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { isWorkflowError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";
import { shorten } from "../internal/json.ts";
import { redact, redactDeep } from "../internal/redact.ts";
import { addUsage, NO_USAGE, type Measures, type Usage } from "../state/execution.ts";
import type { Refusal } from "../state/patch.ts";
import { block, escapeTags } from "../view/text.ts";
import { viewBytes, type View } from "../view/render.ts";
import { holdsWithheld } from "../view/withhold.ts";
import { admitDecision } from "../workflow/advance.ts";
import type { Decision, DecisionCost } from "../workflow/record.ts";
import type { AnyWorkflow, Snapshot } from "../workflow/define.ts";
import type { Phase } from "../workflow/plan.ts";
import { askModel, type ChatAnswer } from "./chat.ts";
import { askGuards } from "./guards.ts";
import { outputMode, redactFor, toMessage, type OutputMode } from "./providers.ts";
import { parseDecision } from "./parse.ts";
import { decisionSchema, workflowSchema, type SchemaScope, type ToolArguments } from "./schema.ts";

/** How often a refused answer goes back to the model with the reason. */
export const MAX_CORRECTIONS = 2;
const MAX_ECHO = 2000;

export interface DecideRequest {
  readonly workflow: AnyWorkflow;
  readonly snapshot: Snapshot;
  /** What the decision is for, in a step that plans or loops. */
  readonly phase?: Phase | null;
  readonly model: BaseChatModel;
  readonly view: View;
  readonly mode?: OutputMode;
  /** How much the answer's schema says of tools' arguments; by the output mode unless set. */
  readonly toolArguments?: ToolArguments;
  /** What the answer's schema is made for; the step unless set. */
  readonly schemaScope?: SchemaScope;
  readonly timeoutMs: number;
  /** What was paid for this decision before; counted into its cost. */
  readonly spent?: Usage;
  readonly clock: Clock;
  readonly config: RunnableConfig;
  readonly onReply?: (delta: string) => void;
  /** True where nothing of a reply may leave before the decision was judged. */
  readonly holdReply?: boolean;
  /** Takes out of a text what the prompt may not show; set only where something is withheld. */
  readonly hide?: (text: string) => string;
  /** Told what an output guard goes on doubting in a decision that passes. */
  readonly onDoubt?: (doubt: string) => void | Promise<void>;
  /** Told of each refused answer as it happens. */
  readonly onRefusal?: (refusal: Refusal, answer: string) => void | Promise<void>;
}

export type Decided =
  | { readonly ok: true; readonly decision: Decision; readonly cost: DecisionCost }
  | { readonly ok: false; readonly refusal: Refusal; readonly cost: DecisionCost };

/**
 * Gets one admissible decision out of a model: ask, parse, check against the table and the state;
 * a refused answer goes back with the reason, at most twice. What it cost is counted in any case.
 *
 * @returns the decision, or the last refusal.
 * @throws MODEL_FAILED or MODEL_TIMEOUT, when the model gave no answer at all.
 */
export async function decide(request: DecideRequest): Promise<Decided> {
  const { workflow, snapshot, model } = request;
  const mode = request.mode ?? outputMode(model);
  // As plain text the schema enforces nothing, so what the signatures in the prompt say need not be said again.
  const toolArguments = request.toolArguments ?? (mode === "json" ? "open" : "full");
  const { step } = snapshot.execution;
  // Plain JSON has the schema behind the prompt, where no cache gains from it: there the shorter one is better.
  const { schema, strict } =
    request.schemaScope === "workflow" && mode !== "json"
      ? workflowSchema(workflow, toolArguments)
      : decisionSchema(workflow, step, snapshot.state, request.phase?.kind, toolArguments);
  const messages = request.view.messages.map((message) => toMessage(message, model));
  if (mode === "json") messages.push(new HumanMessage(block("answer-schema", [JSON.stringify(schema)])));
  let usage = request.spent ?? NO_USAGE;
  let latencyMs = 0;
  let firstTokenMs: number | undefined;

  const sentBack = new Set<number>();
  for (let refused = 0; ;) {
    const answer = await askModel({ ...request, messages, schema, strict }).catch((error: unknown) => {
      // What was paid for refused answers is not lost with the call that failed.
      throw isWorkflowError(error) ? error.addDetails({ usage }) : error;
    });
    usage = addUsage(usage, answer.usage);
    latencyMs += answer.latencyMs;
    firstTokenMs ??= answer.firstTokenMs;
    const measures = (): Measures => ({
      latencyMs,
      firstTokenMs: firstTokenMs ?? 0,
      viewBytes: viewBytes(request.view),
    });
    const read = readAnswer(answer, workflow, snapshot, {
      sentBack,
      isLast: refused >= MAX_CORRECTIONS,
      isPart: request.hide !== undefined,
    });
    if (read.ok) {
      for (const doubt of read.doubts) await request.onDoubt?.(doubt);
      return { ok: true, decision: read.decision, cost: { usage, measures: measures(), refused } };
    }

    refused++;
    const refusal = { ...read.refusal, reason: redactFor(model, read.refusal.reason) };
    await request.onRefusal?.(refusal, redactFor(model, answer.text));
    if (refused > MAX_CORRECTIONS || answer.refusal) {
      return { ok: false, refusal, cost: { usage, measures: measures(), refused } };
    }
    messages.push(
      new AIMessage(shorten(redactFor(model, answer.text), MAX_ECHO)),
      new HumanMessage(correction(refusal, request.hide)),
    );
  }
}

/** How a decision is judged. */
export interface Judging extends GuardsAsked {
  /** True where whoever decides was not shown everything: then he may not repeat what stood in its place. */
  readonly isPart?: boolean;
}

/** What the step's guards have been asked before about the decision in hand. */
interface GuardsAsked {
  /** Those that have sent it back; one that does so now is added. */
  readonly sentBack: Set<number>;
  /** True where there is no answer after this one, so that none can be sent back. */
  readonly isLast: boolean;
}

function readAnswer(
  answer: ChatAnswer,
  workflow: AnyWorkflow,
  snapshot: Snapshot,
  asked: Judging,
): { ok: true; decision: Decision; doubts: readonly string[] } | { ok: false; refusal: Refusal } {
  if (answer.refusal) {
    const reason = `the model refused to answer: ${shorten(redact(answer.refusal), 300)}`;
    return { ok: false, refusal: { code: "MODEL_REFUSED", reason } };
  }
  if (answer.cutOff) {
    const reason = "the answer reached the output limit before it ended; answer again, shorter";
    return { ok: false, refusal: { code: "INVALID_DECISION", reason } };
  }
  return admitText(answer.text, workflow, snapshot, asked);
}

/**
 * Reads the text of a decision and checks it against the table, the state and the step's guards, whoever made it.
 * Pure, but for what a guard does.
 *
 * @returns the decision as the guards have mended it, with what they go on doubting, or why it is refused.
 */
export function admitText(
  text: string,
  workflow: AnyWorkflow,
  snapshot: Snapshot,
  { sentBack, isLast, isPart = false }: Judging,
): { ok: true; decision: Decision; doubts: readonly string[] } | { ok: false; refusal: Refusal } {
  const parsed = parseDecision(text);
  if (!parsed.ok) return parsed;
  const decision = redactDeep(parsed.decision);
  if (isPart && holdsWithheld([decision.patch, decision.calls])) return REPEATED;
  const admitted = admitDecision(workflow, snapshot, decision);
  if (!admitted.ok) return admitted;
  const guarded = askGuards(workflow.steps[snapshot.execution.step], snapshot, decision, sentBack, isLast);
  if (guarded.kind === "sent back") {
    sentBack.add(guarded.guard);
    return { ok: false, refusal: { code: "OUTPUT_GUARD", reason: shorten(guarded.reason, 1000) } };
  }
  const { doubts } = guarded;
  if (guarded.decision === decision) return { ok: true, decision, doubts };
  const mended = admitDecision(workflow, snapshot, guarded.decision);
  return mended.ok ? { ok: true, decision: guarded.decision, doubts } : mended;
}

/** Whoever repeats what stands for a value would overwrite the value with it, or send it somewhere. */
const REPEATED = {
  ok: false,
  refusal: {
    code: "INVALID_DECISION",
    reason: "patch or calls hold what stands for a withheld value; leave it out, the value itself stays as it is",
  },
} as const;

function correction(refusal: Refusal, hide = (text: string) => text): string {
  const reason = block("refused", [`${refusal.code}: ${escapeTags(hide(refusal.reason))}`]);
  return `${reason}\nNothing was changed. Answer again.`;
}
