import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readyCalls, type Scheduled } from "../../src/tools/schedule.ts";

type State = Scheduled["state"];
const call = (needs: readonly number[] = [], keys: readonly string[] | null = [], state: State = "waiting") => ({
  needs,
  keys,
  state,
});

describe("the calls that may go on", () => {
  test("are all where none needs another", () => {
    expect(readyCalls([call(), call(), call()])).toEqual([0, 1, 2]);
    expect(readyCalls([])).toEqual([]);
  });

  test("wait for all that they use, not only for some", () => {
    const calls = (first: State, second: State) => [call([], [], first), call([], [], second), call([0, 1])];
    expect(readyCalls(calls("settled", "running"))).toEqual([]);
    expect(readyCalls(calls("settled", "settled"))).toEqual([2]);
  });

  test("begin with the ones that most others wait for", () => {
    expect(readyCalls([call(), call(), call([1]), call([2])])).toEqual([1, 0]);
  });

  test("that share a key come in order", () => {
    const calls = (first: State) => [call([], ["a"], first), call([], ["a", "b"]), call([], ["b"]), call([], ["c"])];
    expect(readyCalls(calls("waiting"))).toEqual([0, 3]);
    expect(readyCalls(calls("running"))).toEqual([3]);
    expect(readyCalls(calls("settled"))).toEqual([1, 3]);
  });

  test("with keys wait for an earlier one whose keys are not known yet; those without do not", () => {
    const calls = (state: State) => [call([], [], state), call([0], null), call([], ["a"]), call([], [])];
    expect(readyCalls(calls("running"))).toEqual([3]);
    expect(readyCalls(calls("settled"))).toEqual([1, 3]);
  });

  test("never share a key with one that runs, even a later one: an edit may have given them the same", () => {
    expect(readyCalls([call([], ["a"]), call([], ["a"], "running")])).toEqual([]);
    expect(readyCalls([call([], ["a"]), call([], ["a"], "settled")])).toEqual([0]);
  });
});

interface Plan {
  readonly needs: readonly (readonly number[])[];
  readonly keys: readonly (readonly string[])[];
  readonly lasts: readonly number[];
}

const plans: fc.Arbitrary<Plan> = fc.integer({ min: 1, max: 12 }).chain((size) =>
  fc.record({
    needs: fc.tuple(
      ...Array.from({ length: size }, (_, position) =>
        fc.subarray(
          Array.from({ length: position }, (_unused, index) => index),
          { maxLength: Math.min(3, position) },
        ),
      ),
    ),
    keys: fc.array(fc.subarray(["a", "b", "c"], { maxLength: 2 }), { minLength: size, maxLength: size }),
    lasts: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: size, maxLength: size }),
  }),
);

const share = (one: readonly string[] = [], other: readonly string[] = []) => one.some((key) => other.includes(key));

/** What each call has to wait for: those that it uses, and earlier ones with one of its keys. */
function before({ needs, keys }: Plan, position: number): readonly number[] {
  const conflicting = keys.flatMap((own, earlier) =>
    earlier < position && share(own, keys[position]) ? [earlier] : [],
  );
  return [...new Set([...(needs[position] ?? []), ...conflicting])];
}

/** The longest chain. A call with keys also waits until those of earlier ones are known, whatever they turn out to be. */
function criticalPath(plan: Plan): number {
  const ends: number[] = [];
  const knownAt: number[] = [];
  for (const [position, lasts] of plan.lasts.entries()) {
    const endOf = (other: number) => ends[other] ?? 0;
    knownAt.push(Math.max(0, ...(plan.needs[position] ?? []).map(endOf)));
    const hasKeys = (plan.keys[position] ?? []).length > 0;
    const looked = hasKeys ? knownAt.filter((_at, earlier) => (plan.keys[earlier] ?? []).length > 0) : [];
    ends.push(lasts + Math.max(0, ...looked, ...before(plan, position).map(endOf)));
  }
  return Math.max(...ends);
}

/** Runs a plan in simulated time. `choose` picks among those that are ready, as a limit would. */
function simulate(plan: Plan, choose: (ready: readonly number[], running: number) => readonly number[]): number {
  const states: State[] = plan.lasts.map(() => "waiting");
  const ends = new Map<number, number>();
  let now = 0;
  while (states.some((state) => state !== "settled")) {
    // Keys are known once all that a call uses is there.
    const scheduled = states.map((state, position): Scheduled => {
      const needs = plan.needs[position] ?? [];
      const keys = plan.keys[position] ?? [];
      // Where a tool declares no conflicts, there is nothing to wait for.
      const isKnown = keys.length === 0 || needs.every((other) => states[other] === "settled");
      return { needs, keys: isKnown ? keys : null, state };
    });
    const ready = readyCalls(scheduled);
    expect(new Set(ready).size).toBe(ready.length);
    for (const position of ready) {
      expect(states[position]).toBe("waiting");
      for (const other of before(plan, position)) expect(states[other]).toBe("settled");
    }
    if (ends.size === 0) expect(ready).not.toEqual([]);
    const started = choose(ready, ends.size);
    for (const position of started) {
      states[position] = "running";
      ends.set(position, now + (plan.lasts[position] ?? 0));
    }
    // What is started at once may not share a key either.
    const running = [...ends.keys()];
    for (const one of running) {
      for (const other of running) {
        if (one !== other) expect(share(plan.keys[one], plan.keys[other])).toBe(false);
      }
    }
    now = Math.min(...ends.values());
    for (const [position, end] of ends) {
      if (end > now) continue;
      states[position] = "settled";
      ends.delete(position);
    }
  }
  return now;
}

describe("property: whatever the calls need and share", () => {
  test("what is ready has all that it waits for, keys are never held twice, and something can always go on", () => {
    fc.assert(
      fc.property(plans, fc.integer({ min: 1, max: 3 }), (plan, limit) => {
        simulate(plan, (ready, running) => ready.slice(0, Math.max(0, limit - running)));
      }),
      { numRuns: 200 },
    );
  });

  test("a run without a limit takes as long as the longest chain of needs and keys", () => {
    fc.assert(
      fc.property(plans, (plan) => {
        expect(simulate(plan, (ready) => ready)).toBe(criticalPath(plan));
      }),
      { numRuns: 200 },
    );
  });
});
