/** What a skill's module gets beside its parameters; a tool's context has all of it. */
export interface SkillContext {
  /** Fires at the time limit and when the run is cancelled. */
  readonly signal: AbortSignal;
  /** What the caller of `compile` passed as `clients`. */
  readonly clients: Readonly<Record<string, unknown>>;
  /** The state when the call was decided. */
  readonly state: Readonly<Record<string, unknown>>;
}

/** Something worth knowing later, condensed. */
interface NewMemory {
  readonly type: "fact" | "task_result" | "snapshot";
  readonly text: string;
  /** 0 to 5; passing facts have 1. */
  readonly priority: number;
}

/** Why a skill could not do what it was asked for, and what to try instead. */
export interface SkillFailure {
  readonly type: string;
  readonly error: string;
  readonly advice: string;
}

interface Common {
  readonly newMemories?: readonly NewMemory[];
  readonly metadata?: Readonly<Record<string, number | string>>;
}

/** What a skill's `execute` gives. `require_more`: it went well, and another call is needed to get on. */
export type SkillResult<Output> =
  | (Common & { readonly status: "success" | "require_more"; readonly output: Output })
  | (Common & { readonly status: "failure"; readonly output: SkillFailure });

/** A failure as a skill's result. */
export function failure(type: string, error: string, advice: string): SkillResult<never> {
  return { status: "failure", output: { type, error, advice } };
}
