import type { Observation } from "../state/execution.ts";
import type { Piece, Scene } from "./scene.ts";
import { fieldLines, movesLine, renderState, stepLines } from "./state-block.ts";
import { isPlainReply, renderObservation } from "./observation.ts";
import { shortenMiddle } from "./shorten.ts";
import { block, escapeTags } from "./text.ts";
import type { Turn } from "./transcript.ts";

/**
 * One turn of the conversation: the same bytes as when an observation was the latest. Pure.
 *
 * @param before the turn that is shown before it.
 */
export function turnPiece(turn: Turn, maxResultTokens: number, before?: Turn): Piece {
  const { role, observation } = turn;
  if (observation) return { ...observed(observation, maxResultTokens, before), section: "conversation" };
  const text = shortenMiddle(escapeTags(turn.text), 4 * maxResultTokens);
  return { role, section: "conversation", text };
}

export function turnPieces(scene: Scene, turns: readonly Turn[]): readonly Piece[] {
  return turns.map((turn, index) => turnPiece(turn, scene.maxResultTokens, turns[index - 1]));
}

/** The latest observation. Pure. */
export function observationPieces({ observation, maxResultTokens }: Scene, before?: Turn): readonly Piece[] {
  return observation ? [{ ...observed(observation, maxResultTokens, before), isMarked: true }] : [];
}

function observed(observation: Observation, maxResultTokens: number, before?: Turn): Piece {
  const isPlain = isPlainReply(observation, before?.decision);
  const text = renderObservation(observation, maxResultTokens, isPlain);
  const needsDecision = isPlain || observation.kind === "results";
  return { role: "user", section: "observation", text, ...(needsDecision ? { needsDecision } : {}) };
}

/** Where the task is and where it may go, with all that the step says. Pure. */
export function stepPiece({ workflow, snapshot, assignment }: Scene): Piece {
  const lines = [...stepLines(workflow, snapshot.execution.step), movesLine(workflow, snapshot), ...assignment];
  return { role: "user", section: "step", text: block("step", lines) };
}

export function statePiece({ workflow, snapshot, maxValueTokens }: Scene): Piece {
  return { role: "user", section: "state", text: renderState(workflow, snapshot, maxValueTokens) };
}

/** What the task was started with, where the state is not shown. Pure. */
export function givenPieces({ workflow, given, maxValueTokens }: Scene): readonly Piece[] {
  if (given === null) return [];
  const lines = fieldLines(workflow, given, maxValueTokens, (name) => (given[name] ?? null) !== null);
  return [{ role: "user", section: "conversation", text: block("observation", lines, ' kind="start"') }];
}

export function recentPieces(recent: readonly string[]): readonly Piece[] {
  return recent.length > 0 ? [{ role: "user", section: "recent", text: block("recent", recent.map(escapeTags)) }] : [];
}

/** Run-time facts that code keeps: the very last of a prompt, and of no cache. Pure. */
export function statusPieces({ statusBar }: Scene): readonly Piece[] {
  return statusBar.length > 0 ? [{ role: "user", section: "status", text: block("status", statusBar) }] : [];
}
