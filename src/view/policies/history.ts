import { givenPieces, statusPieces } from "../pieces.ts";
import type { Parts, Piece, Scene } from "../scene.ts";
import type { Turn } from "../transcript.ts";
import { nowPieces, splitWalk, walk } from "../walk.ts";

/** The whole conversation, as an agent that keeps its messages sees it. */
export function historyPolicy(scene: Scene): Parts {
  return conversation(scene, 0);
}

/** The latest messages only; never results without the decision that they belong to. */
export function windowPolicy(scene: Scene): Parts {
  return conversation(scene, windowStart(scene.turns, scene.options.keepMessages));
}

/** Where the last so many turns begin, less results whose decision is cut off. Pure. */
export function windowStart(turns: readonly Turn[], count: number): number {
  let start = Math.max(0, turns.length - count);
  while (start > 0 && turns[start]?.observation?.kind === "results") start++;
  return start;
}

/** The turns from one on, then the latest observation, then where the task is. Pure. */
export function conversation(scene: Scene, from: number, summary: readonly Piece[] = []): Parts {
  const before = scene.turns.slice(0, from).findLast(({ to }) => to !== undefined);
  const walked = walk(scene, scene.turns.slice(from), before?.to ?? scene.workflow.initial, () => true);
  const { turns, latest } = splitWalk(walked);
  return {
    head: [walked.opening, ...givenPieces(scene), ...summary],
    turns,
    tail: [...latest, ...nowPieces(scene, walked), ...statusPieces(scene)],
  };
}
