import { observationPieces, statusPieces, stepPiece, turnPieces } from "../pieces.ts";
import type { Parts, Piece, Scene } from "../scene.ts";
import { isSameObservation, type Turn } from "../transcript.ts";

/** The whole conversation, as an agent that keeps its messages sees it. */
export function historyPolicy(scene: Scene): Parts {
  return conversation(scene, scene.turns);
}

/** The latest messages only; never results without the decision that they belong to. */
export function windowPolicy(scene: Scene): Parts {
  return conversation(scene, latestTurns(scene.turns, scene.options.keepMessages));
}

/** The last so many turns, less results at their beginning whose decision is cut off. Pure. */
export function latestTurns(turns: readonly Turn[], count: number): readonly Turn[] {
  const latest = turns.slice(-count);
  const first = latest.findIndex((turn) => turn.observation?.kind !== "results");
  return first > 0 && latest.length < turns.length ? latest.slice(first) : latest;
}

/** Turns, then the latest observation unless it stands among them, then where the task is. Pure. */
export function conversation(scene: Scene, turns: readonly Turn[], head: readonly Piece[] = []): Parts {
  const isShown = turns.findLast((turn) => turn.role === "user");
  const latest = isSameObservation(isShown?.observation, scene.observation)
    ? []
    : observationPieces(scene, turns.at(-1));
  return {
    head,
    turns: turnPieces(scene, turns),
    tail: [...latest, stepPiece(scene), ...statusPieces(scene)],
  };
}
