import { CACHE_RULES, type CacheRule } from "statecard";
import { describe, expect, test } from "vitest";
import { choose, explainChoice, type ChoiceInput } from "../../src/view/choice.ts";
import { paidTokens, type Prompt } from "../../src/view/cost.ts";

/** A text of about so many tokens. */
const text = (tokens: number, word: string) => `${word} `.repeat(tokens).trim();
const part = (content: string, isMarked = false) => ({ role: "user", text: content, isMarked });

describe("what a prompt costs under a cache rule", () => {
  const long = part(text(2000, "word"), true);
  const first: Prompt = [long, part("one")];
  const second: Prompt = [long, part("two")];
  const free = (rule: CacheRule) => ({ ...rule, step: 1 });

  test("nothing is cached without a cache, nor in the first prompt, nor below the minimum", () => {
    expect(paidTokens(CACHE_RULES.none, [first], second)).toMatchObject({ cached: 0, paid: 2001 });
    expect(paidTokens(CACHE_RULES.openai, [], first)).toMatchObject({ cached: 0, paid: 2001 });
    const short: Prompt = [part(text(1000, "word"))];
    expect(paidTokens(CACHE_RULES.openai, [short], short).cached).toBe(0);
  });

  test("an automatic cache finds the longest beginning, in its steps", () => {
    expect(paidTokens(free(CACHE_RULES.openai), [first], second)).toMatchObject({
      total: 2001,
      cached: 2000,
      paid: 201,
    });
    expect(paidTokens(CACHE_RULES.openai, [first], second).cached).toBe(1920);
    const changed: Prompt = [part(`${text(1500, "word")} CHANGED ${text(499, "word")}`)];
    expect(paidTokens(free(CACHE_RULES.openai), [first], changed).cached).toBeGreaterThan(1400);
    expect(paidTokens(free(CACHE_RULES.openai), [first], changed).cached).toBeLessThan(1510);
  });

  test("a cache with breakpoints reads and writes up to marked places only, and writing costs more", () => {
    expect(paidTokens(CACHE_RULES.anthropic, [], first)).toMatchObject({ cached: 0, written: 2000, paid: 2501 });
    expect(paidTokens(CACHE_RULES.anthropic, [first], second)).toMatchObject({ cached: 2000, written: 0, paid: 201 });
    // The only mark stands behind what changes: everything is written again.
    const atEnd = (end: string): Prompt => [part(text(2000, "word")), part(end, true)];
    expect(paidTokens(CACHE_RULES.anthropic, [atEnd("one")], atEnd("two"))).toMatchObject({ cached: 0, written: 2001 });
  });

  test("a cache of units needs one that two earlier prompts have shown to be common", () => {
    const rule = CACHE_RULES.deepseek;
    expect(paidTokens(rule, [first], second).cached).toBe(0);
    expect(paidTokens(rule, [first, second], [long, part("three")]).cached).toBe(2000);
  });
});

describe("going on, or a new snapshot", () => {
  const rule: CacheRule = { ...CACHE_RULES.openai, minimum: 0, step: 1 };
  const input: ChoiceInput = {
    rule,
    hitRate: null,
    calls: 6,
    perCall: 200,
    fixed: 2000,
    fresh: { opening: 0, known: 600, added: 150, tail: 20, changes: 0, calls: 0 },
    standing: { opening: 0, known: 1500, added: 200, tail: 20, changes: 0, calls: 5 },
  };

  test("a cheap cache goes on; without a cache the state is shown anew", () => {
    expect(choose(input).take).toBe("append");
    expect(choose({ ...input, rule: CACHE_RULES.none })).toMatchObject({ take: "snapshot", isKept: false });
  });

  test("the longer the appended text and the dearer reading, the sooner a snapshot is taken", () => {
    const takenAt = (read: number) => {
      const known = Array.from({ length: 400 }, (_, index) => 100 * index);
      return known.find((size) => {
        const standing = { opening: 0, known: 600 + size, added: 200, tail: 20, changes: 0, calls: 5 };
        return choose({ ...input, rule: { ...rule, read }, standing }).take === "snapshot";
      });
    };
    const [cheap, middle, dear] = [takenAt(0.05), takenAt(0.2), takenAt(0.5)].map((size) => size ?? Infinity);
    expect(cheap).toBeGreaterThan(middle ?? 0);
    expect(middle).toBeGreaterThan(dear ?? 0);
    expect(takenAt(0)).toBeUndefined();
  });

  test("what the tail restates counts in full", () => {
    const standing = { opening: 0, known: 1500, added: 200, tail: 900, changes: 880, calls: 5 };
    expect(choose({ ...input, standing }).take).toBe("snapshot");
  });

  test("a measured hit rate overrules the rule: a cache that hits nothing is none", () => {
    expect(choose({ ...input, hitRate: 1 }).take).toBe("append");
    expect(choose({ ...input, hitRate: 0 }).take).toBe("snapshot");
  });

  test("a prompt that is about to grow into the cache goes on; one that stays below it does not", () => {
    const small = {
      ...input,
      rule: CACHE_RULES.openai,
      fresh: { opening: 0, known: 100, added: 50, tail: 20, changes: 0, calls: 0 },
    };
    const standing = { opening: 0, known: 200, added: 200, tail: 20, changes: 0, calls: 2 };
    expect(choose({ ...small, fixed: 600, standing }).take).toBe("append");
    expect(choose({ ...small, fixed: 100, perCall: 60, standing }).take).toBe("snapshot");
  });

  test("the first snapshot is kept where going on from it is expected to pay", () => {
    expect(choose({ ...input, standing: null })).toMatchObject({ take: "snapshot", append: null, isKept: true });
    expect(choose({ ...input, standing: null, rule: CACHE_RULES.none }).isKept).toBe(false);
  });

  test("a state that is about to grow speaks for keeping the first snapshot", () => {
    const small = {
      ...input,
      calls: 0,
      perCall: 100,
      standing: null,
      fresh: { opening: 0, known: 20, added: 40, tail: 20, changes: 0, calls: 0 },
    };
    expect(choose(small).isKept).toBe(false);
    expect(choose({ ...small, stateGrowth: 60 }).isKept).toBe(true);
    expect(choose({ ...small, stateGrowth: 60 }).snapshot).toBe(choose(small).snapshot);
  });

  test("a step's long description, sent before, does not speak against a new snapshot", () => {
    const fresh = { opening: 0, known: 200, added: 150, tail: 20, changes: 0, calls: 0 };
    const standing = { opening: 0, known: 2600, added: 200, tail: 20, changes: 0, calls: 5 };
    const price = (opening: number) => {
      const { append, snapshot, always } = choose({
        ...input,
        fresh: { ...fresh, opening },
        standing: { ...standing, opening },
      });
      return [append ?? 0, snapshot, always];
    };
    // Two thousand tokens more are read from the cache in each of the next six calls, whatever is chosen.
    const [short, long] = [price(0), price(2000)];
    for (const [way, cost] of short.entries()) expect(long[way]).toBeCloseTo(cost + 6 * 2000 * rule.read, 6);
  });

  test("where only units are found, what a call adds is paid twice before it is read", () => {
    const units = { ...rule, match: "units" } as const;
    const once = choose(input);
    const twice = choose({ ...input, rule: units });
    const calls = 6;
    expect((twice.append ?? 0) - (once.append ?? 0)).toBeCloseTo(calls * 200 * (1 - rule.read), 6);
    expect(twice.always).toBe(once.always);
  });

  test("it explains itself in numbers", () => {
    expect(explainChoice(choose(input))).toMatch(
      /^goes on: the next 6 calls cost about \d+ going on, \d+ from a new snapshot on, \d+ with a new one each time$/,
    );
  });
});
