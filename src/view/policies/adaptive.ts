import { jsonEqual } from "../../internal/json.ts";
import type { Usage } from "../../state/execution.ts";
import { choose, isWholeCheaper, type Choice, type PromptSizes } from "../choice.ts";
import { observationPieces, recentPieces, statusPieces } from "../pieces.ts";
import { renderPrefix } from "../prefix.ts";
import type { StepScope } from "../options.ts";
import type { Parts, Piece, Scene, StandingSnapshot } from "../scene.ts";
import { changesSince } from "../changes.ts";
import { fieldLines } from "../state-block.ts";
import { block, escapeTags } from "../text.ts";
import { estimateTokens } from "../tokens.ts";
import { isSameObservation, type Turn } from "../transcript.ts";
import { describe, modelSteps, nowPieces, splitWalk, volatileFrom, walk, type Walk } from "../walk.ts";

/** How many decisions before a new snapshot stay in sight, with what came back. */
const KEPT_DECISIONS = 1;
/** What a call adds, in tokens, before anything is known of the task. */
const FIRST_GUESS = 100;

/** What the policy decided and why; preview and explanations read it. */
export interface AdaptivePlan {
  /** The snapshot that the prompt begins with. */
  readonly standing: StandingSnapshot;
  readonly isNew: boolean;
  /** Decisions since the snapshot. */
  readonly decisions: number;
  readonly choice: Choice;
}

/** A prompt that goes on from a snapshot, and what the choice needs to know of it. */
interface Continued {
  readonly parts: Parts;
  readonly added: readonly number[];
  /** The tokens of what has changed since and is restated. */
  readonly changes: number;
}

/**
 * A snapshot of the state, then observations and decisions as they were first shown, so that the
 * provider's cache keeps them; then a short tail that says where the task is and what has changed. A new
 * snapshot is taken when going on costs more.
 */
export function adaptivePolicy(scene: Scene, take?: "snapshot"): { parts: Parts; plan: AdaptivePlan } {
  const { standing } = scene;
  const taken = snapshotFor(scene, take === "snapshot");
  const fresh = goOn(scene, taken);
  const continued = standing && take !== "snapshot" ? goOn(scene, standing) : null;
  const choice = choose({
    rule: scene.options.rule,
    hitRate: standing && hitRate(scene, standing),
    calls: scene.snapshot.execution.decisions,
    perCall: perCall(scene, (continued ?? fresh).added),
    stateGrowth: stateGrowth(scene),
    fixed: fixedTokens(scene),
    fresh: sizesOf(fresh),
    standing: continued && sizesOf(continued),
  });
  return choice.take === "append" && continued && standing
    ? { parts: continued.parts, plan: { standing, isNew: false, decisions: continued.added.length - 1, choice } }
    : { parts: fresh.parts, plan: { standing: taken, isNew: true, decisions: 0, choice } };
}

function fixedTokens({ besideTokens, workflow }: Scene): number {
  return besideTokens + estimateTokens(renderPrefix(workflow));
}

/** A task keeps to what it began with, so that its prompts keep their beginning. */
function scopeOf(scene: Scene): StepScope {
  const { workflow, options, standing, snapshot } = scene;
  if (options.stepScope) return options.stepScope;
  if (standing) return standing.scope ?? "step";
  const [own, all] = [[snapshot.execution.step], modelSteps(workflow)].map((steps) =>
    tokensOf([describe(workflow, steps)]),
  );
  if (own === undefined || all === undefined) return "step";
  const fixed = fixedTokens(scene);
  const hasRoom = 2 * (fixed + all) <= options.maxTokens;
  return hasRoom && isWholeCheaper(options.rule, fixed, own, all, FIRST_GUESS) ? "workflow" : "step";
}

/** What a decision and what came back have added on average; a guess before the first one. */
function perCall({ turns }: Scene, added: readonly number[]): number {
  const since = added.slice(1);
  if (since.length > 0) return sum(since) / since.length;
  const decisions = turns.filter(({ role }) => role === "assistant").length;
  const all = sum(turns.map(({ text }) => estimateTokens(text)));
  return decisions > 0 ? all / decisions : Math.max(FIRST_GUESS, added[0] ?? 0);
}

/**
 * What a call has added to the state so far; a guess before the first one. Where only units are found it does not
 * count: two first prompts that go their own ways leave the fixed part behind as a unit that other tasks find.
 */
function stateGrowth({ snapshot, options }: Scene): number {
  const { execution, state } = snapshot;
  if (options.rule.match === "units" || options.rule.match === "none") return 0;
  if (execution.decisions === 0) return FIRST_GUESS / 2;
  const set = Object.values(state).filter((value) => value !== null && value !== undefined);
  return estimateTokens(JSON.stringify(set)) / execution.decisions;
}

function sizesOf({ parts, added, changes }: Continued): PromptSizes {
  const last = added.at(-1) ?? 0;
  const [opening, ...snapshot] = parts.head;
  return {
    opening: opening ? tokensOf([opening]) : 0,
    known: tokensOf(snapshot) + sum(added) - last,
    added: last,
    tail: tokensOf(parts.tail.slice(volatileFrom(parts.tail))),
    changes,
    calls: added.length - 1,
  };
}

function sum(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total + size, 0);
}

function tokensOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { text }) => sum + estimateTokens(text), 0);
}

/**
 * A snapshot that leaves out what has just come back and stands right below it anyway; what a decision has written
 * is always in it. Where turns may have to go, it shows the whole state.
 */
function snapshotFor(scene: Scene, isWhole: boolean): StandingSnapshot {
  const taken = takeSnapshot(scene);
  // Where nothing is cached nothing follows it either: the state is all there is to go by.
  if (isWhole || scene.options.rule.match === "none") return taken;
  const { pieces } = walkFrom(scene, taken);
  const below = pieces.flatMap(({ role, section, text }) => (role === "user" && section !== "step" ? [text] : []));
  // What a model has chosen from what stands below is told by nothing else.
  const written = new Set(Object.values(scene.workflow.steps).flatMap(({ run, writes = [] }) => (run ? [] : writes)));
  const isWritten = ([name]: readonly [string, unknown]) => written.has(name);
  const chosen = Object.fromEntries(Object.entries(taken.state).filter(isWritten));
  const restated = { ...changesSince(scene.workflow, chosen, taken.state, below.join("\n")).restated, ...chosen };
  return jsonEqual(restated, taken.state) ? taken : { ...taken, shown: restated };
}

/** A snapshot of the state as it is now, and from where on the conversation is still shown. */
function takeSnapshot(scene: Scene): StandingSnapshot {
  const { snapshot, turns, observation } = scene;
  const { execution, state } = snapshot;
  const set = Object.entries(state).filter(([, value]) => value !== null && value !== undefined);
  const first = firstKept(turns, observation);
  const kept = turns.slice(first);
  const isAmongTurns = turns.some((turn) => isSameObservation(turn.observation, observation));
  const isKept = kept.some((turn) => isSameObservation(turn.observation, observation));
  return {
    revision: execution.revision,
    step: execution.step,
    from: turns[first - 1]?.sequence ?? 0,
    seen: turns.at(-1)?.sequence ?? 0,
    state: Object.fromEntries(set),
    completedSteps: execution.completedSteps,
    // The decisions that stay in sight need no line.
    recent: execution.recent.slice(0, Math.max(0, execution.recent.length - decisionsIn(kept))),
    // It stays the latest until something newer comes, however many decisions that takes.
    ...(observation && isAmongTurns && !isKept ? { observation } : {}),
    ...(scopeOf(scene) === "workflow" ? { scope: "workflow" } : {}),
  };
}

function decisionsIn(turns: readonly Turn[]): number {
  return turns.filter(({ role }) => role === "assistant").length;
}

/** Which turns stay: a decision, what came back, and all since, unless that was long ago. */
function firstKept(turns: readonly Turn[], observation: Scene["observation"]): number {
  const latest = turns.findLastIndex((turn) => isSameObservation(turn.observation, observation));
  const isRecent = latest >= 0 && decisionsIn(turns.slice(latest)) <= KEPT_DECISIONS;
  let first = isRecent ? latest : turns.length;
  for (let decisions = 0; first > 0 && decisions < KEPT_DECISIONS;) {
    first--;
    if (turns[first]?.role === "assistant") decisions++;
  }
  return first;
}

/** The prompt from a snapshot on. */
function goOn(scene: Scene, standing: StandingSnapshot): Continued {
  const walked = walkFrom(scene, standing);
  const { turns, latest } = splitWalk(walked);
  // A step's description names steps, fields and tools: that tells nothing of what the state holds.
  const above = walked.pieces.flatMap(({ section, text }) => (section === "step" ? [] : [text])).join("\n");
  const changes = changeLines(scene, standing, above);
  const now = nowPieces(scene, walked, changes);
  return {
    parts: {
      head: headOf(scene, standing, walked.opening),
      turns,
      tail: [...latest, ...now, ...statusPieces(scene)],
    },
    added: walked.added,
    changes: estimateTokens(changes.join("\n")),
  };
}

function walkFrom(scene: Scene, standing: StandingSnapshot): Walk {
  const shown = scene.turns.filter(({ sequence }) => sequence === undefined || sequence > standing.from);
  const isNew = ({ sequence }: Turn) => sequence === undefined || sequence > standing.seen;
  return walk(scene, shown, standing.step, isNew, standing);
}

function headOf(scene: Scene, standing: StandingSnapshot, opening: Piece): readonly Piece[] {
  const { workflow, maxValueTokens } = scene;
  const lines = [
    ...(standing.completedSteps.length > 0 ? [`completed steps: ${standing.completedSteps.join(", ")}`] : []),
    ...snapshotLines(workflow, standing, maxValueTokens),
  ];
  const observed = standing.observation ? observationPieces({ ...scene, observation: standing.observation }) : [];
  const pieces: readonly Piece[] = [
    opening,
    {
      role: "user",
      section: "state",
      text: block("state", lines, ` revision="${standing.revision}"`),
    },
    ...recentPieces(standing.recent),
    ...observed,
  ];
  // The step's description is the same before every snapshot that is taken there.
  return pieces.map((piece, index) => ({ ...piece, isMarked: index === 0 || index === pieces.length - 1 }));
}

function snapshotLines(workflow: Scene["workflow"], { state, shown }: StandingSnapshot, maxTokens: number) {
  if (!shown) return fieldLines(workflow, state, maxTokens);
  const isSet = (name: string) => (state[name] ?? null) !== null;
  const below = Object.keys(workflow.state).filter((name) => isSet(name) && !jsonEqual(shown[name], state[name]));
  const isShown = (name: string) => !isSet(name) || (shown[name] ?? null) !== null;
  return [...fieldLines(workflow, shown, maxTokens, isShown), `the rest stands below: ${below.join(", ")}`];
}

/** What has changed since the snapshot and cannot be read in the decisions and results that follow it. */
function changeLines(scene: Scene, standing: StandingSnapshot, above: string): readonly string[] {
  const { workflow, snapshot, maxValueTokens } = scene;
  const { restated, inPart, gone } = changesSince(workflow, standing.state, snapshot.state, above);
  const names = Object.keys(restated);
  return [
    ...(names.length > 0 ? [`changed since revision ${standing.revision}:`] : []),
    ...fieldLines(workflow, restated, maxValueTokens, (name) => names.includes(name)),
    ...(inPart.length > 0 ? [`only what is new and not shown above: ${inPart.join(", ")}`] : []),
    ...gone.map((what) => escapeTags(what)),
  ];
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
