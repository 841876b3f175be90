import type { CallResult } from "statecard";
import { z } from "zod";

export const planStepSchema = z.object({
  path: z.string().max(400),
  action: z.enum(["create", "change"]),
  status: z.enum(["pending", "running", "done", "failed"]),
  /** What was decided about it, and why. */
  decision: z.string().max(300),
});
/** One file of the plan. */
export type PlanStep = z.infer<typeof planStepSchema>;

export const lastErrorSchema = z.object({
  message: z.string().max(1000),
  /** What to do about it. */
  action: z.string().max(500),
  status: z.enum(["open", "settled"]),
});

interface Kept {
  readonly plan: readonly PlanStep[] | null;
  readonly lastError: z.infer<typeof lastErrorSchema> | null;
}

/** Where the plan stands: its first open step is in focus. */
export function focusOn(plan: readonly PlanStep[]) {
  const open = plan.findIndex(({ status }) => status === "pending" || status === "running");
  const step = plan[open];
  return {
    plan: plan.map((each, index) => (index === open ? { ...each, status: "running" as const } : each)),
    focus: step ? step.path : "tests",
    nextAction: step ? `${step.action} ${step.path}` : "run the tests",
  };
}

/** A call that failed is the last error, with what its tool advises; one that is well settles it. */
export function keepError(result: CallResult, { lastError }: Kept) {
  if (result.status === "ok")
    return lastError?.status === "open" ? { lastError: { ...lastError, status: "settled" as const } } : {};
  const message = `${result.tool}: ${result.error ?? result.status}`.slice(0, 1000);
  return {
    lastError: {
      message,
      action: (result.hint ?? "look at the reason, then decide again").slice(0, 500),
      status: "open" as const,
    },
  };
}

/** A file that was written is a step that is done. */
export function keepChange(result: CallResult, kept: Kept) {
  const path = result.status === "ok" ? pathIn(result.value) : null;
  return { ...keepError(result, kept), ...(path === null ? {} : settled(kept, path, "done", null)) };
}

/** A step that needs no change, or cannot be made. */
export function keepNote(result: CallResult, kept: Kept) {
  const value = noteSchema.safeParse(result.value).data;
  return value ? settled(kept, value.path, value.status, value.decision) : {};
}

export const noteSchema = z.object({
  path: z.string().max(400),
  status: z.enum(["done", "failed"]),
  decision: z.string().min(1).max(300).describe("why"),
});

const testsSchema = z.object({ passed: z.boolean(), output: z.string() });

const TESTS_FAIL = "the tests fail: ";
const CHANGED_OUTSIDE = "files changed outside: ";

/** Whether the tests pass, and the end of what they say where they do not. Files that were changed stay an error. */
export function keepTests(result: CallResult, kept: Kept) {
  const value = result.status === "ok" ? testsSchema.safeParse(result.value).data : undefined;
  if (!value) return { ...keepError(result, kept), tests: "not run" as const };
  const { lastError } = kept;
  const drift = lastError?.status === "open" && lastError.message.startsWith(CHANGED_OUTSIDE);
  if (value.passed) return { tests: "passed" as const, ...(drift ? {} : keepError(result, kept)) };
  if (drift) return { tests: "failed" as const };
  const message = `${TESTS_FAIL}${value.output.slice(-800)}`;
  const action = "read the module that they name, mend it, and run them again";
  return { tests: "failed" as const, lastError: { message, action, status: "open" as const } };
}

const driftSchema = z.object({ changed: z.array(z.string()), gone: z.array(z.string()) });

/** Files that somebody else has changed are an open error until they have been read. */
export function keepDrift(result: CallResult, kept: Kept) {
  const value = result.status === "ok" ? driftSchema.safeParse(result.value).data : undefined;
  const paths = value ? [...value.changed, ...value.gone] : [];
  if (paths.length === 0) return keepError(result, kept);
  const message = `${CHANGED_OUTSIDE}${paths.join(", ")}`.slice(0, 1000);
  return { lastError: { message, action: "read them again before anything is written", status: "open" as const } };
}

function pathIn(value: unknown): string | null {
  return z.object({ path: z.string() }).safeParse(value).data?.path ?? null;
}

function settled({ plan }: Kept, path: string, status: "done" | "failed", decision: string | null) {
  const steps = (plan ?? []).map((step) =>
    step.path === path ? { ...step, status, decision: decision ?? step.decision } : step,
  );
  return focusOn(steps);
}

/** Steps of the plan that were given up, as the last error. */
export function notDone(failed: readonly Pick<PlanStep, "path" | "decision">[]) {
  const message = `not done: ${failed.map(({ path, decision }) => `${path} (${decision})`).join("; ")}`.slice(0, 1000);
  return { message, action: "do it by hand, or say what to do instead", status: "open" as const };
}
