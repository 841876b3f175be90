import type { Observation } from "../state/execution.ts";
import { observationPieces, turnPiece } from "./pieces.ts";
import type { State } from "../state/fields.ts";
import type { StepScope } from "./options.ts";
import type { Piece, Scene } from "./scene.ts";
import { ShownRecords } from "./shown-records.ts";
import { allMovesLine, commonTools, movesLine, stepLines } from "./state-block.ts";
import { block } from "./text.ts";
import { estimateTokens } from "./tokens.ts";
import { isSameObservation, type Turn } from "./transcript.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { isModelStep } from "../workflow/next-step.ts";

/** A conversation in which every step is described once, where it was entered. */
export interface Walk {
  readonly opening: Piece;
  readonly pieces: readonly Piece[];
  /** About how many tokens came with each decision, those before the first one first. */
  readonly added: readonly number[];
  /** The step that is described last, where it is described alone. */
  readonly lastDescribed: string | undefined;
}

/**
 * Turns, then the latest observation unless it stands among them. A step's instructions and tools are
 * shown where the task entered it, not again in every prompt, so that they stay in a provider's cache. Pure.
 *
 * @param start the step that the task was at before the turns.
 * @param isNew whether a turn came after that; earlier ones move nothing.
 * @param before what stands before the turns: an observation, the state beside it, and which steps are described there.
 */
export function walk(
  scene: Scene,
  turns: readonly Turn[],
  start: string,
  isNew: (turn: Turn) => boolean,
  before: { readonly observation?: Observation; readonly state?: State; readonly scope?: StepScope } = {},
): Walk {
  const { workflow, snapshot, observation } = scene;
  const steps = before.scope === "workflow" ? modelSteps(workflow) : [start];
  const opening = describe(workflow, steps);
  const records = scene.refersBack ? new ShownRecords() : undefined;
  records?.note(before.state);
  records?.note(resultsOf(before.observation));
  // Of many that are described together none is the one that the task is at.
  let lastDescribed = steps.length === 1 ? steps[0] : undefined;
  const pieces: Piece[] = [];
  const added = [0];
  const add = (piece: Piece) => {
    pieces.push(piece);
    added[added.length - 1] = (added.at(-1) ?? 0) + estimateTokens(piece.text);
  };
  // What stands right before the next turn; nothing where a step's description comes in between.
  let last: Turn | undefined;
  const isUnknown = (step: string) => !steps.includes(step) && workflow.steps[step] !== undefined;
  const enter = (step: string) => {
    if (!isUnknown(step)) return;
    add(describe(workflow, [step], steps));
    steps.push(step);
    lastDescribed = step;
    last = undefined;
  };
  for (const turn of turns) {
    const { role, to } = turn;
    if (isNew(turn) && role === "assistant") added.push(0);
    // A decision that only moves says no more than the description that it leads to: right there, or at the beginning.
    const isTold = to !== undefined && onlyMoves(turn) && (isNew(turn) ? isUnknown(to) : to === lastDescribed);
    if (!isTold) {
      add(turnPiece(scene, turn, last, records));
      last = turn;
    }
    if (isNew(turn) && to !== undefined) enter(to);
  }
  const lastSaid = turns.findLast((turn) => turn.role === "user")?.observation ?? before.observation;
  if (!isSameObservation(lastSaid, observation)) {
    for (const piece of observationPieces(scene, last, records)) add(piece);
  }
  enter(snapshot.execution.step);
  return { opening, pieces, added, lastDescribed };
}

/** Whether all that a decision says is another step to go to. */
function onlyMoves({ decision, from, to }: Turn): boolean {
  if (from === undefined || from === to) return false;
  return Object.entries(decision ?? {}).every(([name, value]) => name === "next" || (value ?? null) === null);
}

/** All steps in which a model decides, in the order of the definition. */
export function modelSteps(workflow: AnyWorkflow): string[] {
  return Object.entries(workflow.steps).flatMap(([name, step]) => (isModelStep(step) ? [name] : []));
}

/**
 * Steps as they are described wherever they are entered: with all their moves, since what closes one changes with the
 * state. Pure.
 *
 * @param before steps that the same prompt has described before.
 */
export function describe(workflow: AnyWorkflow, steps: readonly string[], before: readonly string[] = []): Piece {
  const common = commonTools(workflow);
  const blocks = steps.map((step, index) => {
    const told = { common, steps: [...before, ...steps.slice(0, index)] };
    return block("step", [...stepLines(workflow, step, told), allMovesLine(workflow, step) ?? []].flat());
  });
  return { role: "user", section: "step", text: blocks.join("\n") };
}

function resultsOf(observation: Observation | undefined): readonly unknown[] {
  return observation?.kind === "results" ? observation.results.map(({ value }) => value) : [];
}

/** What never leaves a prompt, and what may: the turns before the latest observation. Pure. */
export function splitWalk({ pieces }: Walk): { turns: readonly Piece[]; latest: readonly Piece[] } {
  const split = pieces.findLastIndex(({ section }) => section === "conversation") + 1;
  const latest = pieces.slice(split);
  const mark = (piece: Piece, index: number) => ({ ...piece, isMarked: index === latest.length - 1 });
  return { turns: pieces.slice(0, split), latest: latest.map(mark) };
}

/**
 * Where the task is and may go, after everything that may be cached. It is never cached itself, so that it is there
 * only where it says something: not while the task is at the step that is described last, all its moves are open, and
 * nothing has changed that cannot be read above. No prompt ends with the model's own words. Pure.
 */
export function nowPieces(
  { workflow, snapshot, assignment }: Scene,
  { lastDescribed, pieces }: Walk,
  changes: readonly string[] = [],
): readonly Piece[] {
  const { execution } = snapshot;
  const place = [`step: ${execution.step}`, movesLine(workflow, snapshot)];
  const isTold =
    execution.step === lastDescribed &&
    place[1] === allMovesLine(workflow, execution.step) &&
    pieces.at(-1)?.role !== "assistant";
  const facts = [...(execution.retryCount > 0 ? [`retries: ${execution.retryCount}`] : []), ...changes, ...assignment];
  return isTold && facts.length === 0
    ? []
    : [{ role: "user", section: "now", text: block("now", [...place, ...facts]) }];
}

/** Where the part of a prompt begins that changes each time, and that no cache keeps. Pure. */
export function volatileFrom(tail: readonly Piece[]): number {
  const at = tail.findIndex(({ section }) => section === "now" || section === "status");
  return at < 0 ? tail.length : at;
}
