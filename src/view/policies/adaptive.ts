import type { Usage } from "../../state/execution.ts";
import { choose, type Choice } from "../choice.ts";
import { observationPieces, recentPieces, statusPieces, turnPiece } from "../pieces.ts";
import { renderPrefix } from "../prefix.ts";
import type { Parts, Piece, Scene, StandingSnapshot } from "../scene.ts";
import { changesSince } from "../changes.ts";
import { fieldLines, movesLine, stepLines } from "../state-block.ts";
import { block, escapeTags } from "../text.ts";
import { estimateTokens } from "../tokens.ts";
import { isSameObservation, type Turn } from "../transcript.ts";

/** How many decisions before a new snapshot stay in sight, with what came back. */
const KEPT_DECISIONS = 1;

/** What the policy decided and why; preview and explanations read it. */
export interface AdaptivePlan {
  /** The snapshot that the prompt begins with. */
  readonly standing: StandingSnapshot;
  readonly isNew: boolean;
  /** Whether a later prompt can gain by going on from it. */
  readonly isWorthKeeping: boolean;
  /** Decisions since the snapshot. */
  readonly decisions: number;
  /** Null where there was no choice: no snapshot stood. */
  readonly choice: Choice | null;
}

/** A prompt that goes on from a snapshot, and what the choice needs to know of it. */
interface Continued {
  readonly parts: Parts;
  readonly added: readonly number[];
}

/**
 * A snapshot of the state, then observations and decisions as they were first shown, so that the
 * provider's cache keeps them; then a short tail that says where the task is and what has changed. A new
 * snapshot is taken when going on costs more.
 */
export function adaptivePolicy(scene: Scene, take?: "snapshot"): { parts: Parts; plan: AdaptivePlan } {
  const taken = takeSnapshot(scene);
  const fresh = goOn(scene, taken);
  const { standing } = scene;
  const { rule } = scene.options;
  const fixed = scene.besideTokens + estimateTokens(renderPrefix(scene.workflow));
  const isWorthKeeping = rule.match !== "none";
  const continued = standing && take !== "snapshot" ? goOn(scene, standing) : null;
  if (!standing || !continued) {
    return { parts: fresh.parts, plan: { standing: taken, isNew: true, isWorthKeeping, decisions: 0, choice: null } };
  }
  const choice = choose({
    rule,
    hitRate: hitRate(scene, standing),
    calls: scene.snapshot.execution.decisions,
    fixed,
    standing: tokensOf(continued.parts.head),
    added: continued.added,
    tail: tokensOf(volatile(continued.parts)),
    fresh: tokensOf(fresh.parts.head),
    freshAdded: fresh.added.reduce((sum, size) => sum + size, 0),
    freshTail: tokensOf(volatile(fresh.parts)),
  });
  const used = choice.take === "append" ? continued : fresh;
  return {
    parts: used.parts,
    plan: {
      standing: choice.take === "append" ? standing : taken,
      isNew: choice.take === "snapshot",
      isWorthKeeping,
      decisions: choice.take === "append" ? continued.added.length - 1 : 0,
      choice,
    },
  };
}

function tokensOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { text }) => sum + estimateTokens(text), 0);
}

/** The pieces that the next prompt will not have again. */
function volatile({ tail }: Parts): readonly Piece[] {
  return tail.filter(({ section }) => section === "now" || section === "status");
}

/** A snapshot of the state as it is now, and from where on the conversation is still shown. */
function takeSnapshot({ snapshot, turns, observation }: Scene): StandingSnapshot {
  const { execution, state } = snapshot;
  const set = Object.entries(state).filter(([, value]) => value !== null && value !== undefined);
  const kept = keptTurns(turns, observation);
  return {
    revision: execution.revision,
    step: execution.step,
    from: turns[turns.length - kept - 1]?.sequence ?? 0,
    seen: turns.at(-1)?.sequence ?? 0,
    state: Object.fromEntries(set),
    completedSteps: execution.completedSteps,
    // The decisions that stay in sight need no line.
    recent: execution.recent.slice(
      0,
      Math.max(0, execution.recent.length - decisionsIn(turns.slice(-kept || turns.length))),
    ),
  };
}

function decisionsIn(turns: readonly Turn[]): number {
  return turns.filter(({ role }) => role === "assistant").length;
}

/** How many of the latest turns stay: some decisions, and all since the latest observation if it stands among them. */
function keptTurns(turns: readonly Turn[], observation: Scene["observation"]): number {
  const lastUser = turns.findLastIndex((turn) => turn.role === "user");
  const isAmong = isSameObservation(turns[lastUser]?.observation, observation);
  let first = isAmong ? lastUser : turns.length;
  for (let decisions = 0; first > 0 && decisions < KEPT_DECISIONS;) {
    first--;
    if (turns[first]?.role === "assistant") decisions++;
  }
  return turns.length - first;
}

/** The prompt from a snapshot on. */
function goOn(scene: Scene, standing: StandingSnapshot): Continued {
  const { workflow, snapshot, observation } = scene;
  const { execution } = snapshot;
  const describedSteps = new Set([standing.step]);
  const describedTools = new Set(workflow.steps[standing.step]?.tools);
  let step = standing.step;
  const enter = (to: string): Piece[] => {
    const isKnown = step === to || describedSteps.has(to);
    step = to;
    if (isKnown) return [];
    const lines = stepLines(workflow, to, describedTools);
    describedSteps.add(to);
    for (const tool of workflow.steps[to]?.tools ?? []) describedTools.add(tool);
    return [{ role: "user", section: "step", text: block("step", lines) }];
  };
  const pieces: Piece[] = [];
  const added = [0];
  const add = (piece: Piece) => {
    pieces.push(piece);
    added[added.length - 1] = (added.at(-1) ?? 0) + estimateTokens(piece.text);
  };
  const shown = scene.turns.filter(({ sequence }) => sequence === undefined || sequence > standing.from);
  for (const [index, turn] of shown.entries()) {
    const isNew = turn.sequence === undefined || turn.sequence > standing.seen;
    if (isNew && turn.role === "assistant") added.push(0);
    add(turnPiece(turn, scene.maxResultTokens, shown[index - 1]));
    if (isNew && turn.to !== undefined) for (const piece of enter(turn.to)) add(piece);
  }
  const lastShown = shown.findLast((turn) => turn.role === "user");
  if (observation && !isSameObservation(lastShown?.observation, observation)) {
    for (const piece of observationPieces(scene, shown.at(-1))) add(piece);
  }
  for (const piece of enter(execution.step)) add(piece);
  const split = pieces.findLastIndex(({ section }) => section === "conversation") + 1;
  const stable = pieces.slice(split);
  const above = pieces.map(({ text }) => text).join("\n");
  return {
    parts: {
      head: headOf(scene, standing),
      turns: pieces.slice(0, split),
      tail: [...markLast(stable), nowPiece(scene, standing, above), ...statusPieces(scene)],
    },
    added,
  };
}

function markLast(pieces: readonly Piece[]): readonly Piece[] {
  return pieces.map((piece, index) => ({ ...piece, isMarked: index === pieces.length - 1 }));
}

function headOf({ workflow, maxValueTokens }: Scene, standing: StandingSnapshot): readonly Piece[] {
  const lines = [
    ...(standing.completedSteps.length > 0 ? [`completed steps: ${standing.completedSteps.join(", ")}`] : []),
    ...fieldLines(workflow, standing.state, maxValueTokens),
  ];
  return [
    { role: "user", section: "step", text: block("step", stepLines(workflow, standing.step)) },
    {
      role: "user",
      section: "state",
      text: block("state", lines, ` revision="${standing.revision}"`),
      isMarked: standing.recent.length === 0,
    },
    ...recentPieces(standing.recent).map((piece) => ({ ...piece, isMarked: true })),
  ];
}

/** The step, the legal moves and what has changed: restated in every prompt, after everything that may be cached. */
function nowPiece(scene: Scene, standing: StandingSnapshot, above: string): Piece {
  const { workflow, snapshot, maxValueTokens, assignment } = scene;
  const { execution, state } = snapshot;
  const { restated, inPart, gone } = changesSince(workflow, standing.state, state, above);
  const names = Object.keys(restated);
  const lines = [
    `step: ${execution.step}`,
    movesLine(workflow, snapshot),
    ...(execution.retryCount > 0 ? [`retries: ${execution.retryCount}`] : []),
    ...(names.length > 0 ? [`changed since revision ${standing.revision}:`] : []),
    ...fieldLines(workflow, restated, maxValueTokens, (name) => names.includes(name)),
    ...(inPart.length > 0 ? [`only what is new and not shown above: ${inPart.join(", ")}`] : []),
    ...gone.map((what) => escapeTags(what)),
    ...assignment,
  ];
  return { role: "user", section: "now", text: block("now", lines) };
}

/** Which share of what the cache should have held was read from it, as far as the provider tells. */
function hitRate({ turns, snapshot, options }: Scene, standing: StandingSnapshot): number | null {
  if (snapshot.execution.usage.cachedTokens === 0 || options.rule.match === "none") return null;
  const calls = turns.flatMap(({ usage, sequence }): Usage[] =>
    usage && usage.calls === 1 && usage.inputTokens > 0 && (sequence ?? 0) > standing.seen ? [usage] : [],
  );
  // The first call after a snapshot had to miss.
  const [first, ...later] = calls;
  if (!first || later.length === 0) return null;
  let before = first.inputTokens;
  let expected = 0;
  let read = 0;
  for (const { inputTokens, cachedTokens } of later) {
    expected += Math.min(before, inputTokens);
    read += cachedTokens;
    before = inputTokens;
  }
  return expected === 0 ? null : Math.min(1, read / expected);
}
