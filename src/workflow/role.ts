import { isPlainObject } from "../internal/json.ts";
import type { AnyWorkflow } from "./define.ts";
import type { Fault } from "./fault.ts";
import { isModelStep, targets } from "./next-step.ts";

/** Who carries out a workflow. Each part is shown only where it matters; all of it is text, so what must hold is code. */
export interface Role {
  /** Who it is, and what is not its business. In every prompt. */
  readonly identity: string;
  /** How to go about the work. In steps in which a direction is chosen: more than one way on, tools, a plan. */
  readonly advice?: string;
  /** How answers are written. In steps that write one: see `writesAnswer` of a step. */
  readonly style?: string;
  /** What it never does. In every prompt. */
  readonly safety?: string;
}

/** The parts of a role, in the order of a document. */
export const ROLE_PARTS = ["identity", "advice", "style", "safety"] as const satisfies readonly (keyof Role)[];

/** The most characters of a role: each of them is paid for in every prompt that shows it. */
export const MAX_ROLE_CHARACTERS = 16_000;

/** The parts of a step's role that are not in every prompt. */
export type StepRolePart = "advice" | "style";

/** The parts of the workflow's role that a step's text shows. Pure. */
export function rolePartsOf({ role, steps }: AnyWorkflow, name: string): readonly StepRolePart[] {
  const step = Object.hasOwn(steps, name) ? steps[name] : undefined;
  if (!role || !step || !isModelStep(step)) return [];
  const ways = targets(step);
  const choosesDirection = ways.length > 1 || (step.tools?.length ?? 0) > 0;
  const writesAnswer = step.writesAnswer ?? ways.some((to) => steps[to]?.final);
  return [
    ...(choosesDirection && role.advice ? (["advice"] as const) : []),
    ...(writesAnswer && role.style ? (["style"] as const) : []),
  ];
}

/** What is wrong with a role, and with what steps say of it. Pure. */
export function roleFaults({ role, steps }: AnyWorkflow): readonly Fault[] {
  const faults: Fault[] = Object.entries(steps).flatMap(([name, step]) =>
    step.writesAnswer !== undefined && !isModelStep(step)
      ? [
          {
            path: `steps.${name}.writesAnswer`,
            code: "INVALID_STEP",
            message: "is about what a model writes, and none does here",
          },
        ]
      : [],
  );
  if (role === null) return faults;
  const fault = (path: string, message: string) => faults.push({ path, code: "INVALID_ROLE", message });
  // What comes from plain JavaScript or a file of another kind may be anything.
  const given: unknown = role;
  if (!isPlainObject(given)) {
    fault("role", "must be a role: { identity, advice, style, safety }, or what loadRole() gives");
    return faults;
  }
  const texts = Object.entries(given).flatMap(([part, text]) => (typeof text === "string" ? [{ part, text }] : []));
  for (const [part, text] of Object.entries(given)) {
    const isKnown = ROLE_PARTS.some((known) => known === part);
    if (!isKnown) fault(`role.${part}`, `a role has ${ROLE_PARTS.join(", ")}; nothing else is shown`);
    else if (text !== undefined && typeof text !== "string") fault(`role.${part}`, "must be a text");
  }
  if (!texts.some(({ part, text }) => part === "identity" && text.trim() !== "")) {
    fault("role.identity", "must say who carries out the workflow");
  }
  const characters = texts.reduce((sum, { text }) => sum + text.length, 0);
  if (characters > MAX_ROLE_CHARACTERS) {
    fault("role", `has ${characters} characters, at most ${MAX_ROLE_CHARACTERS} are shown`);
  }
  return faults;
}
