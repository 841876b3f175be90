import { WorkflowError } from "../errors.ts";
import { CACHE_RULES, cacheRule, type CacheRule, type ProviderName } from "./cache-rules.ts";
import { statusBarFault, type StatusBarOptions } from "./status-bar/input.ts";
import type { Turn } from "./transcript.ts";

/** Which parts of the past the model may see beside the instructions. */
export const POLICIES = ["adaptive", "state", "history", "window", "summary", "structured", "retrieval"] as const;
export type Policy = (typeof POLICIES)[number];

/** Which steps a prompt describes: those that the task has been at, or all of the workflow at its beginning. */
const STEP_SCOPES = ["step", "workflow"] as const;
export type StepScope = (typeof STEP_SCOPES)[number];

/** Makes a summary of the turns that a prompt leaves out. */
type Summarise = (turns: readonly Turn[]) => string | Promise<string>;

export interface ViewOptions {
  readonly policy: Policy;
  /** Under the policy `state`: how many of the latest raw messages to add; 0 unless set. */
  readonly rawMessages: number;
  /** The most tokens (o200k) of a prompt, whatever the policy; 8,000 unless set. */
  readonly maxTokens?: number;
  /** The most tokens of a tool result; of a longer one beginning and end are shown. 1,000 unless set. */
  readonly maxResultTokens?: number;
  /**
   * The most tokens of what the model itself has asked or replied, where that stands in the conversation; of a longer
   * text an outline is shown. 150 unless set, Infinity for all of it.
   */
  readonly maxSaidTokens?: number;
  /** Under `adaptive`: true where each record is shown whole, also one that the prompt has shown before; false unless set. */
  readonly repeatRecords?: boolean;
  /**
   * Under `adaptive`: which steps a prompt describes with their instructions and tools. Unless set, those that the task
   * has been at; all of them where that costs much less, since only a prompt of some length is cached.
   */
  readonly stepScope?: StepScope;
  /** Under `window` and `summary`: how many of the latest messages are shown whole; under `retrieval`, of the most similar. 6 unless set. */
  readonly keepMessages?: number;
  /** Whose prompt cache the costs are reckoned by: a name, or a rule of your own. By the model unless set. */
  readonly provider?: ProviderName | CacheRule;
  /** Under `summary`: makes the summary, in place of the extract that code makes. */
  readonly summarise?: Summarise;
  /** Which run-time facts the model is told; all five kinds unless switched off. */
  readonly statusBar?: StatusBarOptions;
}

const NAMES = Object.keys({
  policy: true,
  rawMessages: true,
  maxTokens: true,
  maxResultTokens: true,
  maxSaidTokens: true,
  repeatRecords: true,
  stepScope: true,
  keepMessages: true,
  provider: true,
  summarise: true,
  statusBar: true,
} satisfies Record<keyof ViewOptions, true>);

export const WINDOW_TURNS = 6;
const DEFAULT_MAX_TOKENS = 8000;
const DEFAULT_MAX_RESULT_TOKENS = 1000;
const DEFAULT_MAX_SAID_TOKENS = 150;
const DEFAULT_VIEW: ViewOptions = { policy: "adaptive", rawMessages: 0 };

/** Options with every default filled in. */
export interface ResolvedOptions {
  readonly policy: Policy;
  readonly rawMessages: number;
  readonly maxTokens: number;
  readonly maxResultTokens: number;
  readonly maxSaidTokens: number;
  readonly keepMessages: number;
  readonly repeatRecords: boolean;
  readonly stepScope: StepScope | undefined;
  readonly rule: CacheRule;
}

export function resolveOptions(options: ViewOptions): ResolvedOptions {
  const { maxTokens, maxResultTokens, keepMessages, provider } = options;
  return {
    policy: options.policy,
    rawMessages: options.rawMessages,
    maxTokens: maxTokens ?? DEFAULT_MAX_TOKENS,
    maxResultTokens: maxResultTokens ?? DEFAULT_MAX_RESULT_TOKENS,
    maxSaidTokens: options.maxSaidTokens ?? DEFAULT_MAX_SAID_TOKENS,
    keepMessages: keepMessages ?? WINDOW_TURNS,
    repeatRecords: options.repeatRecords ?? false,
    stepScope: options.stepScope,
    rule: cacheRule(provider ?? "unknown"),
  };
}

/**
 * Checks what a caller gave and fills in policy and raw messages.
 *
 * @throws INVALID_OPTIONS.
 */
export function viewOptions(given: Partial<ViewOptions> = {}): ViewOptions {
  const options: ViewOptions = { ...DEFAULT_VIEW, ...given };
  const refuse = (message: string) => new WorkflowError("INVALID_OPTIONS", message);
  const unknown = Object.keys(given).find((name) => !NAMES.includes(name));
  if (unknown !== undefined) throw refuse(`unknown option view.${unknown}; there are: ${NAMES.join(", ")}`);
  if (!POLICIES.includes(options.policy)) {
    throw refuse(`unknown view policy "${options.policy}"; there are: ${POLICIES.join(", ")}`);
  }
  const whole = (
    name: "rawMessages" | "maxTokens" | "maxResultTokens" | "maxSaidTokens" | "keepMessages",
    least: number,
  ) => {
    const value = options[name];
    const isOpen = value === Infinity && name.startsWith("max");
    if (value === undefined || isOpen || (Number.isInteger(value) && value >= least)) return;
    throw refuse(`view.${name} must be a whole number from ${least}`);
  };
  whole("rawMessages", 0);
  whole("maxTokens", 100);
  whole("maxResultTokens", 10);
  whole("maxSaidTokens", 40);
  whole("keepMessages", 1);
  if (typeof (options.repeatRecords ?? false) !== "boolean") throw refuse("view.repeatRecords must be true or false");
  if (options.stepScope !== undefined && !STEP_SCOPES.includes(options.stepScope)) {
    throw refuse(`unknown view.stepScope "${options.stepScope as string}"; there are: ${STEP_SCOPES.join(", ")}`);
  }
  if (typeof options.provider === "string" && !Object.hasOwn(CACHE_RULES, options.provider)) {
    const known = Object.keys(CACHE_RULES).join(", ");
    throw refuse(`unknown view.provider "${options.provider}"; there are: ${known}, or pass a rule of your own`);
  }
  const fault = options.statusBar ? statusBarFault(options.statusBar) : null;
  if (fault !== null) throw refuse(fault);
  return options;
}

/** True where a view needs the conversation, which the runtime then reads from the event log. */
export function needsTurns(options: ViewOptions): boolean {
  return options.policy !== "state" || options.rawMessages > 0;
}
