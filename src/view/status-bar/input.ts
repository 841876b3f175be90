import type { Observation } from "../../state/execution.ts";
import type { AnyWorkflow, Snapshot } from "../../workflow/define.ts";

/** The five kinds of run-time facts that code tells the model. */
export const TECHNIQUES = ["timestamps", "counters", "todo", "errors", "system"] as const;
export type Technique = (typeof TECHNIQUES)[number];

/** Which facts the model is told, and how. All are on unless switched off; each speaks only where there is something to say. */
export interface StatusBarOptions {
  /** When messages and results came, and what a long gap means; `true` for every one, not only after a long gap. */
  readonly timestamps?: boolean;
  /** How often a tool was called, what of its limit is left, what to do after repeated failures. */
  readonly counters?: boolean;
  /** What is open in the fields made with `todoField()`. */
  readonly todo?: boolean;
  /** The kind of an error, the arguments, what to try and what was tried. */
  readonly errors?: boolean;
  /** Progress, limits left, the size of the state, and what is given here. */
  readonly system?: boolean | SystemFacts;
  /** Whether a new bar replaces the one before or is added behind it; `auto` unless set: what is cheaper. */
  readonly mode?: "auto" | BarMode;
}
export type BarMode = "replace" | "append";

/** Nothing is told. */
export const NO_STATUS_BAR: StatusBarOptions = {
  timestamps: false,
  counters: false,
  todo: false,
  errors: false,
  system: false,
};

const MODES: readonly string[] = ["auto", "replace", "append"];

/** What is wrong with options that did not come through the type checker; null where nothing is. */
export function statusBarFault(options: StatusBarOptions): string | null {
  const known: readonly string[] = [...TECHNIQUES, "mode"];
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) return `there is no view.statusBar.${unknown}; there are: ${known.join(", ")}`;
  const { mode } = options;
  if (mode !== undefined && !MODES.includes(mode)) return `view.statusBar.mode must be one of ${MODES.join(", ")}`;
  return null;
}

/** What a model that writes commands has to know. */
export interface SystemFacts {
  /** The state field that holds the working directory. */
  readonly directory?: string;
  /** The operating system that commands run on, such as `Ubuntu 24.04`. */
  readonly os?: string;
  readonly shell?: string;
}

/** Everything that a bar depends on; the same input gives the same bytes. */
export interface StatusBarInput {
  readonly workflow: AnyWorkflow;
  readonly snapshot: Snapshot;
  /** What the view shows as the latest observation. */
  readonly observation: Observation | null;
  /** When the observation before that one came, where it is known; milliseconds since 1970, as `now`. */
  readonly previousAt?: number | null;
  readonly now: number;
  readonly options?: StatusBarOptions;
}
