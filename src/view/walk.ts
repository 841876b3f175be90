import type { Observation } from "../state/execution.ts";
import { observationPieces, turnPiece } from "./pieces.ts";
import type { State } from "../state/fields.ts";
import type { Piece, Scene } from "./scene.ts";
import { ShownRecords } from "./shown-records.ts";
import { movesLine, stepLines } from "./state-block.ts";
import { block } from "./text.ts";
import { estimateTokens } from "./tokens.ts";
import { isSameObservation, type Turn } from "./transcript.ts";

/** A conversation in which every step is described once, where it was entered. */
export interface Walk {
  readonly opening: Piece;
  readonly pieces: readonly Piece[];
  /** About how many tokens came with each decision, those before the first one first. */
  readonly added: readonly number[];
}

/**
 * Turns, then the latest observation unless it stands among them. A step's instructions and tools are
 * shown where the task entered it, not again in every prompt, so that they stay in a provider's cache. Pure.
 *
 * @param start the step that the task was at before the turns.
 * @param isNew whether a turn came after that; earlier ones move nothing.
 * @param shownBefore the observation that stands before the turns, and the state that it stands beside.
 */
export function walk(
  scene: Scene,
  turns: readonly Turn[],
  start: string,
  isNew: (turn: Turn) => boolean,
  shownBefore: { readonly observation?: Observation; readonly state?: State } = {},
): Walk {
  const { workflow, snapshot, observation } = scene;
  const described = [start];
  const records = scene.refersBack ? new ShownRecords() : undefined;
  records?.note(shownBefore.state);
  records?.note(resultsOf(shownBefore.observation));
  const pieces: Piece[] = [];
  const added = [0];
  const add = (piece: Piece) => {
    pieces.push(piece);
    added[added.length - 1] = (added.at(-1) ?? 0) + estimateTokens(piece.text);
  };
  const enter = (step: string) => {
    if (described.includes(step) || !workflow.steps[step]) return;
    add({ role: "user", section: "step", text: block("step", stepLines(workflow, step, described)) });
    described.push(step);
  };
  for (const [index, turn] of turns.entries()) {
    if (isNew(turn) && turn.role === "assistant") added.push(0);
    add(turnPiece(scene, turn, turns[index - 1], records));
    if (isNew(turn) && turn.to !== undefined) enter(turn.to);
  }
  const lastSaid = turns.findLast((turn) => turn.role === "user")?.observation ?? shownBefore.observation;
  if (!isSameObservation(lastSaid, observation)) {
    for (const piece of observationPieces(scene, turns.at(-1), records)) add(piece);
  }
  enter(snapshot.execution.step);
  const opening: Piece = { role: "user", section: "step", text: block("step", stepLines(workflow, start)) };
  return { opening, pieces, added };
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

/** Where the task is and may go: restated in every prompt, after everything that may be cached. Pure. */
export function nowPiece({ workflow, snapshot, assignment }: Scene, changes: readonly string[] = []): Piece {
  const { execution } = snapshot;
  const lines = [
    `step: ${execution.step}`,
    movesLine(workflow, snapshot),
    ...(execution.retryCount > 0 ? [`retries: ${execution.retryCount}`] : []),
    ...changes,
    ...assignment,
  ];
  return { role: "user", section: "now", text: block("now", lines) };
}
