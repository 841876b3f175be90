import { redact } from "../internal/redact.ts";
import type { Observation } from "../state/execution.ts";
import type { Piece, Scene } from "./scene.ts";
import { commonTools, fieldLines, movesLine, renderState, stepLines } from "./state-block.ts";
import { formOf, renderObservation } from "./observation.ts";
import type { ShownRecords } from "./shown-records.ts";
import { shortenLines, shortenMiddle } from "./shorten.ts";
import { block, escapeTags } from "./text.ts";
import { fitsIn } from "./tokens.ts";
import type { Turn } from "./transcript.ts";

/**
 * One turn of the conversation: the same bytes as when an observation was the latest.
 *
 * @param before the turn that is shown before it.
 * @param records what the same prompt has shown before it, where results may refer to that; it is added to.
 */
export function turnPiece(scene: Scene, turn: Turn, before?: Turn, records?: ShownRecords): Piece {
  const { maxResultTokens, options } = scene;
  const { role, observation } = turn;
  if (observation) return { ...observed(scene, observation, before, records), section: "conversation" };
  const text = shortenMiddle(escapeTags(saidIn(turn, options.maxSaidTokens)), 4 * maxResultTokens);
  return { role, section: "conversation", text };
}

/** A decision as it was written, but for long texts to people: what they listed mostly stands in results. */
function saidIn({ text, decision }: Turn, maxTokens: number): string {
  const shorter = (["ask", "reply"] as const).flatMap((part) => {
    const said = decision?.[part];
    if (typeof said !== "string" || fitsIn(said, maxTokens)) return [];
    // Of a secret that was cut nobody could tell any more that it is one.
    return [[part, shortenLines(redact(said), maxTokens)] as const];
  });
  return shorter.length > 0 ? JSON.stringify({ ...decision, ...Object.fromEntries(shorter) }) : text;
}

export function turnPieces(scene: Scene, turns: readonly Turn[]): readonly Piece[] {
  return turns.map((turn, index) => turnPiece(scene, turn, turns[index - 1]));
}

/** The latest observation; `records` as for a turn. */
export function observationPieces(scene: Scene, before?: Turn, records?: ShownRecords): readonly Piece[] {
  const { observation } = scene;
  return observation ? [{ ...observed(scene, observation, before, records), isMarked: true }] : [];
}

function observed(
  { workflow, maxResultTokens }: Scene,
  observation: Observation,
  before?: Turn,
  records?: ShownRecords,
): Piece {
  const form = formOf(observation, before?.decision, workflow.untrustedMessages);
  const text = renderObservation(observation, maxResultTokens, form, records);
  const needsDecision = form !== "named" || observation.kind === "results";
  return { role: "user", section: "observation", text, ...(needsDecision ? { needsDecision } : {}) };
}

/** Where the task is and where it may go, with all that the step says. Pure. */
export function stepPiece({ workflow, snapshot, assignment }: Scene): Piece {
  const told = { common: commonTools(workflow) };
  const lines = [...stepLines(workflow, snapshot.execution.step, told), movesLine(workflow, snapshot), ...assignment];
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
