import type { SkillContext as FullContext, SkillMemory } from "statecard";
import type { z } from "zod";

/** What the skills of this example use of their context. */
export type SkillContext = Pick<FullContext, "signal" | "clients" | "state">;

/** Why a skill could not do what it was asked for, and what to try instead. */
interface SkillFailure {
  readonly type: string;
  readonly error: string;
  readonly advice: string;
}

interface Common {
  readonly newMemories?: readonly SkillMemory[];
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

/** Checks what a SKILL.md cannot say of its parameters; what does not fit is a failure that the model can mend. */
export function readParameters<T>(
  schema: z.ZodType<T>,
  given: unknown,
): { readonly ok: true; readonly parameters: T } | { readonly ok: false; readonly failed: SkillResult<never> } {
  const parsed = schema.safeParse(given);
  if (parsed.success) return { ok: true, parameters: parsed.data };
  const issues = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  return { ok: false, failed: failure("INVALID_PARAMETERS", issues.join("; "), "mend them and call again") };
}
