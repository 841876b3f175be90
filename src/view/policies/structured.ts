import { statePiece } from "../pieces.ts";
import type { Parts, Scene } from "../scene.ts";
import type { Turn } from "../transcript.ts";
import { volatileFrom } from "../walk.ts";
import { conversation } from "./history.ts";

/** What of a decision is more than talk. */
const KEPT = new Set(["calls", "patch", "clear", "next"]);

/** The calls and results of the whole history, and the state's fields; no talk. */
export function structuredPolicy(scene: Scene): Parts {
  // What it was started with is in the state.
  const kept = { ...scene, turns: scene.turns.flatMap(structured), given: null };
  const { head, turns, tail } = conversation(kept, 0);
  const now = volatileFrom(tail);
  return { head, turns, tail: [...tail.slice(0, now), statePiece(scene), ...tail.slice(now)] };
}

function structured(turn: Turn): Turn[] {
  if (turn.role === "user") return turn.observation?.kind === "results" ? [turn] : [];
  if (!turn.decision) return [];
  const kept = Object.entries(turn.decision).filter(([key, value]) => KEPT.has(key) && value !== null);
  const decision = Object.fromEntries(kept);
  return kept.length > 0 ? [{ ...turn, decision, text: JSON.stringify(decision) }] : [];
}
