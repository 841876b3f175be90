/** A call of a random plan: how long it takes, and what it waits for. */
interface GraphCall {
  readonly ms: number;
  /** Positions of the calls whose results it uses, all before it. */
  readonly needs: readonly number[];
  /** Calls with the same key run one at a time, in order. */
  readonly key: string | null;
}

/** The calls of one plan, in the order in which a model would write them. */
export type CallGraph = readonly GraphCall[];

export interface GraphShape {
  /** Whether a part of the calls share keys. */
  readonly hasKeys: boolean;
  readonly random: () => number;
}

const CALLS = { least: 10, most: 50 };
const DEPTH = { least: 2, most: 8 };
const LATENCY_MS = { least: 5, most: 60 };
const KEYS = ["one", "two", "three"];
const SHARE_WITH_KEYS = 0.3;

/** A random plan: as many levels as its depth says, each call using results of one to three earlier ones. */
export function randomGraph({ hasKeys, random }: GraphShape): CallGraph {
  const between = ({ least, most }: { least: number; most: number }) =>
    least + Math.floor(random() * (most - least + 1));
  const depth = between(DEPTH);
  const count = Math.max(between(CALLS), depth);
  const levels: number[] = [];
  const calls: GraphCall[] = [];
  for (let position = 0; position < count; position++) {
    // One call of each level first, so that the depth is reached.
    const level = position < depth ? position : Math.floor(random() * depth);
    const above = levels.flatMap((other, index) => (other === level - 1 ? [index] : []));
    const earlier = levels.flatMap((other, index) => (other < level ? [index] : []));
    const needs = new Set(level === 0 ? [] : [pick(above, random)]);
    const more = level === 0 ? 0 : Math.floor(random() * 3);
    for (let index = 0; index < more; index++) needs.add(pick(earlier, random));
    const key = hasKeys && random() < SHARE_WITH_KEYS ? pick(KEYS, random) : null;
    levels.push(level);
    calls.push({ ms: between(LATENCY_MS), needs: [...needs], key });
  }
  return calls;
}

function pick<T>(items: readonly T[], random: () => number): T {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new Error("there is nothing to pick from");
  return item;
}

/**
 * When each call ends at the earliest, in milliseconds, without a limit: what it uses has ended, earlier calls
 * with its key have, and of no earlier call is the key unknown. (A key that comes with a result is known once
 * that result is there; before, a later call with a key cannot rightly go first.)
 */
export function earliestEnds(graph: CallGraph): readonly number[] {
  const ends: number[] = [];
  const knownAt: number[] = [];
  for (const [position, call] of graph.entries()) {
    const known = Math.max(0, ...call.needs.map((other) => ends[other] ?? 0));
    const keyed = graph.slice(0, position).map((other, index) => {
      if (call.key === null || other.key === null) return 0;
      return other.key === call.key ? (ends[index] ?? 0) : (knownAt[index] ?? 0);
    });
    knownAt.push(known);
    ends.push(Math.max(known, ...keyed) + call.ms);
  }
  return ends;
}

/** What no schedule can go below: the longest chain, or all work shared evenly by those who may work at once. */
export function lowerBound(graph: CallGraph, limit: number): number {
  const work = graph.reduce((sum, { ms }) => sum + ms, 0);
  return Math.max(work / limit, ...earliestEnds(graph));
}

/**
 * How long somebody takes who always starts what has the longest way to go: `knowing` by the times, which
 * nobody knows beforehand, else by the number of calls. With a limit, the best that there is lies between the
 * lower bound and the first of the two.
 */
export function listTime(graph: CallGraph, limit: number, isKnowing: boolean): number {
  const left = longestWays(graph, ({ ms }) => (isKnowing ? ms : 1));
  const ends: (number | null)[] = graph.map(() => null);
  const isOver = (position: number, now: number) => (ends[position] ?? Infinity) <= now;
  const isDue = (position: number, now: number): boolean => {
    const { needs, key } = graph[position] ?? { needs: [], key: null };
    if (ends[position] !== null || !needs.every((other) => isOver(other, now))) return false;
    return !graph.slice(0, position).some((other, index) => {
      if (key === null || other.key === null || isOver(index, now)) return false;
      return other.key === key || !other.needs.every((needed) => isOver(needed, now));
    });
  };
  let now = 0;
  while (ends.includes(null)) {
    const due = graph.flatMap((_, position) => (isDue(position, now) ? [position] : []));
    const running = ends.filter((end) => end !== null && end > now).length;
    const started = due.toSorted((a, b) => (left[b] ?? 0) - (left[a] ?? 0)).slice(0, limit - running);
    for (const position of started) ends[position] = now + (graph[position]?.ms ?? 0);
    now = Math.min(...ends.flatMap((end) => (end !== null && end > now ? [end] : [])));
  }
  return Math.max(...ends.map((end) => end ?? 0));
}

/** The longest way from each call to the end of all that waits for it. */
function longestWays(graph: CallGraph, weigh: (call: GraphCall) => number): readonly number[] {
  const ways = graph.map(weigh);
  for (const [position, { needs }] of [...graph.entries()].toReversed()) {
    for (const other of needs) {
      const own = graph[other] ? weigh(graph[other]) : 0;
      ways[other] = Math.max(ways[other] ?? 0, own + (ways[position] ?? 0));
    }
  }
  return ways;
}

export function sequentialTime(graph: CallGraph): number {
  return graph.reduce((sum, { ms }) => sum + ms, 0);
}

/** Positions by level, where each level waits for the whole level before: the naive way to run calls at once. */
export function levelsOf(graph: CallGraph): readonly (readonly number[])[] {
  const levels: number[] = [];
  for (const [position, { needs, key }] of graph.entries()) {
    const sharing = graph
      .slice(0, position)
      .flatMap((other, index) => (key !== null && other.key === key ? [index] : []));
    levels.push(Math.max(-1, ...[...needs, ...sharing].map((other) => levels[other] ?? 0)) + 1);
  }
  const depth = Math.max(...levels) + 1;
  return Array.from({ length: depth }, (_, level) =>
    levels.flatMap((other, index) => (other === level ? [index] : [])),
  );
}

/** The batches of the naive way: levels, cut into pieces of what the limit allows. */
export function batchesOf(graph: CallGraph, limit: number): readonly (readonly number[])[] {
  return levelsOf(graph).flatMap((level) =>
    Array.from({ length: Math.ceil(level.length / limit) }, (_, piece) =>
      level.slice(piece * limit, (piece + 1) * limit),
    ),
  );
}

/** How long the naive way takes at the least. */
export function batchTime(graph: CallGraph, limit: number): number {
  const longest = (batch: readonly number[]) => Math.max(...batch.map((position) => graph[position]?.ms ?? 0));
  return batchesOf(graph, limit).reduce((sum, batch) => sum + longest(batch), 0);
}

/** The calls that wait for one of the given, however far. */
export function dependants(graph: CallGraph, given: number): ReadonlySet<number> {
  const found = new Set([given]);
  for (const [position, { needs }] of graph.entries()) {
    if (needs.some((other) => found.has(other))) found.add(position);
  }
  found.delete(given);
  return found;
}
