import { CACHE_RULES, type CacheRule, type ProviderName } from "../src/view/cache-rules.ts";
import type { Paid, Prompt } from "../src/view/cost.ts";
import { callsOf, OTHERS, payFor, promptsOf, SIDES, type Side } from "./context-policies.ts";
import { replay, type ModelCall } from "./context-replay.ts";
import { look, nothingSeen } from "./context-sufficiency.ts";
import type { ContextSet } from "./context-workflows.ts";

/** One way to make prompts, under one cache rule, over all conversations of a set. */
export interface Measured {
  readonly side: Side;
  readonly rule: string;
  readonly tokens: { readonly mean: number; readonly p95: number; readonly max: number; readonly total: number };
  /** Uncached tokens' worth per recorded call: with the first prompts of other tasks before, and without. */
  readonly warm: number;
  readonly cold: number;
  readonly valuesSeen: number;
  readonly toolsSeen: number;
  readonly misses: readonly (readonly [string, number])[];
  /** Per conversation, warm: paid in all, and against the cheapest of the others. */
  readonly paid: readonly number[];
  readonly ofCheapest: readonly number[];
}

export interface SetMeasured {
  readonly name: string;
  readonly conversations: number;
  readonly calls: number;
  readonly measured: readonly Measured[];
}

/** The prompts of one side, and what could be seen in them. */
interface Made {
  readonly prompts: readonly (readonly Prompt[])[];
  readonly seen: Pick<Measured, "valuesSeen" | "toolsSeen" | "misses">;
}

export function measureSet(
  set: ContextSet,
  rules: readonly ProviderName[],
  isReported: (index: number) => boolean,
): SetMeasured {
  const replayed = set.conversations.filter((_each, index) => isReported(index)).map((one) => replay(set, one));
  const calls = replayed.flat().filter(({ isMove }) => !isMove).length;
  // Only adaptive prompts depend on the rule.
  const fixed = new Map<Side, Made>();
  const make = (side: Side, rule: CacheRule): Made => {
    const own = replayed.map((calls) => callsOf(side, calls));
    const prompts = own.map((calls) => promptsOf(side, set, calls, rule));
    return { prompts, seen: seenIn(set, own, prompts) };
  };
  const measured: Measured[] = [];
  for (const name of rules) {
    const rule = CACHE_RULES[name];
    for (const side of SIDES) {
      const made = (side === "adaptive" ? undefined : fixed.get(side)) ?? make(side, rule);
      fixed.set(side, made);
      const { prompts } = made;
      // Of the latest task that began at a step its first prompts, for each step.
      const beginnings = new Map<string, readonly Prompt[]>();
      const warm: (readonly Paid[])[] = [];
      const cold: (readonly Paid[])[] = [];
      for (const [index, one] of prompts.entries()) {
        warm.push(payFor(rule, one, [...beginnings.values()].flat()));
        beginnings.set(replayed[index]?.[0]?.snapshot.execution.step ?? "", one.slice(0, 2));
        cold.push(payFor(rule, one, []));
      }
      measured.push({ side, rule: name, ...made.seen, ...costs(warm, cold, calls), ofCheapest: [] });
    }
  }
  return {
    name: set.name,
    conversations: replayed.length,
    calls,
    measured: measured.map((one) => compared(one, measured)),
  };
}

/** @param calls how many model calls were recorded: what a side needs beyond them is part of what these cost. */
function costs(warm: readonly (readonly Paid[])[], cold: readonly (readonly Paid[])[], calls: number) {
  const tokens = warm
    .flat()
    .map(({ total }) => total)
    .toSorted((a, b) => a - b);
  const total = tokens.reduce((sum, one) => sum + one, 0);
  const paid = warm.map((one) => one.reduce((sum, call) => sum + call.paid, 0));
  const mean = (all: readonly (readonly Paid[])[]) => all.flat().reduce((sum, call) => sum + call.paid, 0) / calls;
  return {
    tokens: {
      mean: total / calls,
      p95: tokens[Math.floor(0.95 * (tokens.length - 1))] ?? 0,
      max: tokens.at(-1) ?? 0,
      total,
    },
    warm: mean(warm),
    cold: mean(cold),
    paid: paid.map((one) => Math.round(one)),
  };
}

function seenIn(set: ContextSet, replayed: readonly (readonly ModelCall[])[], prompts: readonly (readonly Prompt[])[]) {
  const seen = nothingSeen();
  for (const [index, calls] of replayed.entries()) {
    for (const [number, call] of calls.entries()) look(set, call, prompts[index]?.[number] ?? [], seen);
  }
  return {
    valuesSeen: seen.seen / Math.max(1, seen.values),
    toolsSeen: seen.toolsSeen / Math.max(1, seen.calls),
    misses: [...seen.misses].toSorted(([, a], [, b]) => b - a).slice(0, 40),
  };
}

/** The share of the cheapest of the others under the same rule, conversation by conversation. */
function compared(one: Measured, all: readonly Measured[]): Measured {
  const others = all.filter(({ side, rule }) => rule === one.rule && OTHERS.includes(side));
  const ofCheapest = one.paid.map((paid, index) =>
    Number((paid / Math.min(...others.map((other) => other.paid[index] ?? Infinity))).toFixed(3)),
  );
  return { ...one, ofCheapest };
}
