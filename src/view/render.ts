import { redact } from "../internal/redact.ts";
import type { Observation } from "../state/execution.ts";
import type { AnyWorkflow, Snapshot } from "../workflow/define.ts";
import type { PromptPart } from "./cost.ts";
import { fit, whole } from "./limit.ts";
import { withMemory } from "./memory.ts";
import { resolveOptions, type Policy, type ViewOptions } from "./options.ts";
import { adaptivePolicy, type AdaptivePlan } from "./policies/adaptive.ts";
import { historyPolicy, windowPolicy } from "./policies/history.ts";
import { retrievalPolicy, retrieve } from "./policies/retrieval.ts";
import { statePolicy } from "./policies/state.ts";
import { structuredPolicy } from "./policies/structured.ts";
import { summaryPolicy } from "./policies/summary.ts";
import { renderPrefix } from "./prefix.ts";
import type { Parts, Piece, Scene, SectionName, StandingSnapshot } from "./scene.ts";
import { partTokens } from "./tokens.ts";
import { isSameObservation, type Turn } from "./transcript.ts";

export interface ViewMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
  /** Where in the content cache breakpoints stand, for providers that have them. */
  readonly marks?: readonly number[];
}

/** A named part of a view, from stable to volatile. */
export interface Section {
  readonly name: SectionName;
  readonly text: string;
}

/** What the model is shown for one decision. */
export interface View {
  readonly messages: readonly ViewMessage[];
  readonly sections: readonly Section[];
  /** Under the policy `adaptive`: where the prompt's snapshot stands and why. */
  readonly plan?: AdaptivePlan;
}

/** Everything that a view depends on; the same input gives the same bytes. */
export interface ViewInput {
  readonly workflow: AnyWorkflow;
  readonly snapshot: Snapshot;
  readonly observation: Observation | null;
  /** The conversation so far; the policy `state` reads it for raw messages only. */
  readonly turns: readonly Turn[];
  /** The fields that the task was started with, for policies that do not show the state. */
  readonly given?: Readonly<Record<string, unknown>> | null;
  readonly options: ViewOptions;
  /** The snapshot that earlier prompts of this task began with; only `adaptive` reads it. */
  readonly standing?: StandingSnapshot | null;
  /** Lines of the step that say what this very decision is for. */
  readonly assignment?: readonly string[];
  /** Run-time facts for the very end of the prompt. */
  readonly statusBar?: readonly string[];
  /** What is remembered across tasks, as `Memory.block` gives it. */
  readonly memory?: readonly string[];
  /** Under `summary`: what to show in place of the turns that are left out. */
  readonly summary?: string | null;
  /** About how many tokens the provider gets beside the prompt, before it: the decision's schema. */
  readonly besideTokens?: number;
}

/**
 * Renders the prompt of one decision, stable parts first: the first message is byte-identical for
 * every decision of every task of a workflow version, so that prompt caches hit. Pure.
 *
 * @throws CONTEXT_TOO_SMALL where even what must stay has more tokens than `maxTokens`.
 */
export function renderView(input: ViewInput): View {
  const options = resolveOptions(input.options);
  const scene: Scene = {
    workflow: input.workflow,
    snapshot: input.snapshot,
    observation: input.observation,
    turns: withoutLatest(input.turns, input.observation),
    given: input.given ?? null,
    standing: input.standing ?? null,
    assignment: input.assignment ?? [],
    statusBar: input.statusBar ?? [],
    memory: input.memory ?? [],
    summary: input.summary ?? null,
    besideTokens: input.besideTokens ?? 0,
    options,
    maxResultTokens: options.maxResultTokens,
    maxValueTokens: Infinity,
    refersBack: false,
  };
  const prefix = renderPrefix(input.workflow);
  const { policy } = options;
  if (policy !== "adaptive") {
    const shown = policy === "retrieval" ? { ...scene, turns: retrieve(scene) } : scene;
    return assemble(
      prefix,
      fit(prefix, options.maxTokens, shown, (squeezed) => withMemory(partsOf(policy, squeezed), squeezed)),
    );
  }
  // Where going on has no room, a new snapshot is the way to leave things out; where that has none, nothing refers to
  // what may have to go, and only the task's own step is described.
  const referring = { ...scene, refersBack: !options.repeatRecords };
  for (const take of [undefined, "snapshot"] as const) {
    const { parts, plan } = adaptivePolicy(referring, take);
    const pieces = whole(prefix, options.maxTokens, withMemory(parts, scene));
    if (pieces) return { ...assemble(prefix, pieces), plan };
  }
  let plan: AdaptivePlan | undefined;
  const own: Scene = { ...scene, options: { ...options, stepScope: "step" } };
  const fitted = fit(prefix, options.maxTokens, own, (squeezed) => {
    const renewed = adaptivePolicy(squeezed, "snapshot");
    ({ plan } = renewed);
    return withMemory(renewed.parts, squeezed);
  });
  return { ...assemble(prefix, fitted), ...(plan ? { plan } : {}) };
}

type Plain = Exclude<Policy, "adaptive">;

function partsOf(policy: Plain, scene: Scene): Parts {
  switch (policy) {
    case "state":
      return statePolicy(scene);
    case "history":
      return historyPolicy(scene);
    case "window":
      return windowPolicy(scene);
    case "summary":
      return summaryPolicy(scene);
    case "structured":
      return structuredPolicy(scene);
    case "retrieval":
      return retrievalPolicy(scene);
  }
}

/** The conversation without the observation that is shown as the latest anyway. */
function withoutLatest(turns: readonly Turn[], observation: Observation | null): readonly Turn[] {
  const last = turns.at(-1);
  if (last?.role !== "user" || !observation) return turns;
  const isLatest = last.observation
    ? isSameObservation(last.observation, observation)
    : "text" in observation && observation.text === last.text;
  return isLatest ? turns.slice(0, -1) : turns;
}

/** Messages out of pieces; neighbours of one role become one message, as some chat templates demand. */
function assemble(prefix: string, pieces: readonly Piece[]): View {
  const messages: { role: "user" | "assistant"; content: string; marks: number[] }[] = [];
  const sections: Section[] = [{ name: "instructions", text: prefix }];
  for (const { role, section, text, isMarked } of pieces) {
    // What comes in is redacted where it comes in; a state may be older than a secret's declaration.
    const shown = redact(text);
    const last = messages.at(-1);
    if (last?.role === role) last.content += `\n${shown}`;
    else messages.push({ role, content: shown, marks: [] });
    const message = messages.at(-1);
    if (isMarked) message?.marks.push(message.content.length);
    sections.push({ name: section, text: section === "conversation" ? `${role}: ${shown}` : shown });
  }
  return {
    messages: [
      { role: "system", content: prefix, marks: [prefix.length] },
      ...messages.map(({ role, content, marks }) => ({ role, content, ...(marks.length > 0 ? { marks } : {}) })),
    ],
    sections,
  };
}

/** A view's messages cut at their cache breakpoints, as a provider's cache sees them. */
export function promptOf(view: View): readonly PromptPart[] {
  return view.messages.flatMap(({ role, content, marks = [] }) => {
    const ends = marks.at(-1) === content.length ? marks : [...marks, content.length];
    return ends.map((end, index) => ({
      role,
      text: content.slice(ends[index - 1] ?? 0, end),
      isMarked: marks.includes(end),
    }));
  });
}

/** The tokens (o200k) of a view's messages, without what a provider adds around each. */
export function viewTokens(view: View): number {
  return view.messages.reduce((sum, message) => sum + partTokens(message.content), 0);
}

/** The bytes (UTF-8) of a view's messages. */
export function viewBytes(view: View): number {
  return view.messages.reduce((sum, message) => sum + Buffer.byteLength(message.content), 0);
}
