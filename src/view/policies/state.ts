import { observationPieces, recentPieces, statePiece, statusPieces, stepPiece, turnPieces } from "../pieces.ts";
import type { Parts, Scene } from "../scene.ts";

/** The state alone, with as many raw messages as were asked for. */
export function statePolicy(scene: Scene): Parts {
  const { rawMessages } = scene.options;
  return {
    head: [],
    turns: rawMessages > 0 ? turnPieces(scene, scene.turns.slice(-rawMessages)) : [],
    tail: [
      stepPiece(scene),
      statePiece(scene),
      ...recentPieces(scene.snapshot.execution.recent),
      ...observationPieces(scene).map((piece) => ({ ...piece, isMarked: false })),
      ...statusPieces(scene),
    ],
  };
}
