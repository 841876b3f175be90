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
  readonly changedOutside: readonly string[] | null;
}

const TESTS_FAIL = "the tests fail";
const NO_TESTS = "no tests were run";
const CHANGED_OUTSIDE = "files changed outside";

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

/** A call that failed is the last error, with what its tool advises; one that is well settles it, unless tests have to. */
export function keepError(result: CallResult, { lastError }: Kept) {
  if (result.status === "ok") {
    const isSettled =
      lastError?.status === "open" && ![TESTS_FAIL, NO_TESTS].some((what) => lastError.message.startsWith(what));
    return isSettled ? { lastError: { ...lastError, status: "settled" as const } } : {};
  }
  const message = `${result.tool}: ${result.error ?? result.status}`.slice(0, 1000);
  return openError(message, result.hint ?? "look at the reason, then decide again");
}

function openError(message: string, action: string) {
  return { lastError: { message, action: action.slice(0, 500), status: "open" as const } };
}

/** A file that somebody else had changed since the task knew it is kept for the report. */
export function keepRead(result: CallResult, kept: Kept) {
  const value = z.object({ path: z.string(), note: z.string() }).safeParse(result.value).data;
  const isDrift = result.status === "ok" && value?.note.startsWith(CHANGED_OUTSIDE) === true;
  return { ...keepError(result, kept), ...(isDrift ? outside(kept, [value.path]) : {}) };
}

function outside({ changedOutside }: Kept, paths: readonly string[]) {
  return { changedOutside: [...new Set([...(changedOutside ?? []), ...paths])].slice(0, MAX_OUTSIDE) };
}

/** The most files that are kept as changed outside. */
export const MAX_OUTSIDE = 40;

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

const testsSchema = z.object({ passed: z.boolean(), tests: z.number().optional(), output: z.string() });

/** Whether the tests pass, and the end of what they say where they do not. Without a test nothing has passed. */
export function keepTests(result: CallResult, kept: Kept) {
  const value = result.status === "ok" ? testsSchema.safeParse(result.value).data : undefined;
  if (!value) return { ...keepError(result, kept), tests: "not run" as const };
  if (value.tests === 0) {
    const message = `${NO_TESTS}: the project has none that its test command finds, so nothing shows that it still works`;
    return {
      ...openError(message, "ask a person: they can add tests, or leave it at that"),
      tests: "not run" as const,
    };
  }
  if (value.passed) {
    const { lastError } = kept;
    return {
      tests: "passed" as const,
      ...(lastError ? { lastError: { ...lastError, status: "settled" as const } } : {}),
    };
  }
  const message = `${TESTS_FAIL}:\n${endOf(value.output)}`;
  const action = "read the module that they name, mend it, and run them again";
  return { tests: "failed" as const, ...openError(message, action) };
}

const FAILED_TEST = /^\s*(?:not ok \d|[✖✗×] |FAIL )/;

/** The last lines of what tests print, as many as fit, behind the lines that name what failed. Pure. */
export function endOf(output: string): string {
  const lines = output
    .trimEnd()
    .split("\n")
    .map((line) => line.trimEnd().slice(0, 300));
  const last = lastThatFit(lines, 600);
  const failed = lines.slice(0, lines.length - last.length).filter((line) => FAILED_TEST.test(line));
  const named = lastThatFit(
    failed.map((line) => line.trim()),
    300,
  );
  return [...named, ...(named.length > 0 ? ["…"] : []), ...last].join("\n");
}

function lastThatFit(lines: readonly string[], characters: number): readonly string[] {
  let left = characters;
  const from = lines.findLastIndex((line) => (left -= line.length + 1) < 0);
  return lines.slice(from + 1);
}

const driftSchema = z.object({ changed: z.array(z.string()), gone: z.array(z.string()) });

/** Files that somebody else has changed are an open error until they have been read. */
export function keepDrift(result: CallResult, kept: Kept) {
  if (result.status !== "ok") return keepError(result, kept);
  const { changed = [], gone = [] } = driftSchema.safeParse(result.value).data ?? {};
  const paths = [...changed, ...gone];
  if (paths.length === 0) return {};
  const again = paths.every((path) => kept.changedOutside?.includes(path)) ? " again" : "";
  return {
    ...openError(`${CHANGED_OUTSIDE}${again}: ${listed(paths)}`, "read them again before anything is written"),
    ...outside(kept, paths),
  };
}

/** As many of a list as fit into a message. */
function listed(all: readonly string[], separator = ", "): string {
  let left = 900;
  const first = all.findIndex((one) => (left -= one.length + separator.length) < 0);
  const shown = first === -1 ? all : all.slice(0, first);
  return [...shown, ...(shown.length < all.length ? [`and ${all.length - shown.length} more`] : [])].join(separator);
}

/** What a report says about files that somebody else has changed; nothing where there are none. */
export function outsideTold(paths: readonly string[] | null): string {
  return paths?.length ? ` Files changed outside: ${listed(paths)}.` : "";
}

function pathIn(value: unknown): string | null {
  return z.object({ path: z.string() }).safeParse(value).data?.path ?? null;
}

function settled({ plan }: Kept, path: string, status: "done" | "failed", decision: string | null) {
  const steps = (plan ?? []).map((step) =>
    step.path === path ? { ...step, status, decision: decision ?? step.decision } : step,
  );
  const isWithout = steps.some((step) => step.path === path && step.action === "create" && step.status === "failed");
  return focusOn(isWithout ? steps.map((step) => withoutNew(step, path)) : steps);
}

/** Without the new module the others stay as they are: they would import what is not there. */
function withoutNew(step: PlanStep, created: string): PlanStep {
  const isOpen = step.status === "pending" || step.status === "running";
  return isOpen
    ? { ...step, status: "failed", decision: `left as it is, since ${created} was not made`.slice(0, 300) }
    : step;
}

/** Steps of the plan that were given up, as the last error. */
export function notDone(failed: readonly Pick<PlanStep, "path" | "decision">[]) {
  const told = failed.map(({ path, decision }) => `${path} (${decision})`);
  return openError(`not done: ${listed(told, "; ")}`, "do it by hand, or say what to do instead");
}
