import type { Observation } from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import type { AnyWorkflow, Snapshot } from "../workflow/define.ts";
import type { ResolvedOptions, StepScope } from "./options.ts";
import type { Turn } from "./transcript.ts";

/** A named part of a view. */
export type SectionName =
  | "instructions"
  | "summary"
  | "conversation"
  | "step"
  | "state"
  | "memory"
  | "recent"
  | "observation"
  | "now"
  | "status";

/** A piece of a prompt's text, before pieces of the same role are put into one message. */
export interface Piece {
  readonly role: "user" | "assistant";
  readonly section: SectionName;
  readonly text: string;
  /** A cache breakpoint stands at its end, where the provider has them. */
  readonly isMarked?: boolean;
  /** Results and answers make no sense without the decision that stands before them. */
  readonly needsDecision?: boolean;
}

/** What a policy shows: only the turns in the middle may be left out, oldest first, where there is no room. */
export interface Parts {
  readonly head: readonly Piece[];
  readonly turns: readonly Piece[];
  readonly tail: readonly Piece[];
}

/** Where a state was shown whole, so that later prompts can go on from there. Kept in the task's log. */
export interface StandingSnapshot {
  readonly revision: number;
  readonly step: string;
  /** Turns of log entries after this one are shown after the state. */
  readonly from: number;
  /** The last log entry when it was taken: what comes after it is newer than the state. */
  readonly seen: number;
  readonly state: State;
  readonly completedSteps: readonly string[];
  readonly recent: readonly string[];
  /** What of the state is shown, where the rest of it stands in the turns and the observation that follow. */
  readonly shown?: State;
  /** The latest observation, where it came too long ago to stand among the turns that are still shown. */
  readonly observation?: Observation;
  /** Which steps are described before it; the one that it was taken at unless set. */
  readonly scope?: StepScope;
}

/** What a policy renders from. */
export interface Scene {
  readonly workflow: AnyWorkflow;
  readonly snapshot: Snapshot;
  readonly observation: Observation | null;
  /** The conversation before the observation. */
  readonly turns: readonly Turn[];
  /** The fields that the task was started with, for policies that do not show the state; null where there are none. */
  readonly given: Readonly<Record<string, unknown>> | null;
  readonly standing: StandingSnapshot | null;
  /** What this decision is for, where it is not just the next one of its step. */
  readonly assignment: readonly string[];
  readonly statusBar: readonly string[];
  /** What is remembered across tasks, a line each. */
  readonly memory: readonly string[];
  readonly summary: string | null;
  /** What is sent beside the prompt and cached before it: the decision's schema. */
  readonly besideTokens: number;
  readonly options: ResolvedOptions;
  /** How much of a result and of a field's value is shown; less where the prompt has no room. */
  readonly maxResultTokens: number;
  readonly maxValueTokens: number;
  /** Whether results may refer to what stands before them, which then has to stay there. */
  readonly refersBack: boolean;
}
