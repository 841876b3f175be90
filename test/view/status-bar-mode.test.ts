import { describe, expect, test } from "vitest";
import { chooseBarMode, type BarModeInput } from "../../src/view/status-bar/mode.ts";

const BAR = 200;
const FIXED = 3000;
const ANSWER = 150;
const TURN = 750;
const base: Omit<BarModeInput, "turnsExpected" | "lostTokens"> = { barTokens: BAR, cachedPrice: 0.1, writePrice: 1 };

/** The first number of turns from which replacing is strictly cheaper. */
function cheaperFrom(lost: (turns: number) => number): number | "never" {
  for (let turnsExpected = 1; turnsExpected <= 2000; turnsExpected++) {
    const { replaceCost, appendCost } = chooseBarMode({ ...base, turnsExpected, lostTokens: lost(turnsExpected) });
    if (replaceCost < appendCost) return turnsExpected;
  }
  return "never";
}

describe("replacing is cheaper", () => {
  test.each([
    ["nothing, with a breakpoint before the bar", () => 0, 2],
    ["the answer, with a free longest prefix", () => ANSWER, 14],
    // Played turn by turn, where the first turns lose something else, it is 84 or 85.
    ["a turn and the bar, where whole units match", () => TURN + BAR, 86],
    [
      "on average half of the history, with one breakpoint at the end",
      (turns: number) => FIXED + (TURN * turns) / 2,
      "never",
    ],
  ])("where the cache loses %s", (_name, lost, turns) => {
    expect(cheaperFrom(lost)).toBe(turns);
  });

  test("from the turn on that the rule of thumb 2(1 − α)R / αS says", () => {
    for (const lost of [100, 150, 400, 950]) {
      const turns = cheaperFrom(() => lost);
      expect(Math.abs(Number(turns) - (2 * 0.9 * lost) / (0.1 * BAR))).toBeLessThanOrEqual(1);
    }
  });
});

test("a price for writing into the cache speaks for replacing", () => {
  const input = { ...base, turnsExpected: 10, lostTokens: ANSWER };
  expect(chooseBarMode(input).mode).toBe("append");
  expect(chooseBarMode({ ...input, writePrice: 1.25 }).mode).toBe("replace");
});

test("explains itself in numbers", () => {
  const choice = chooseBarMode({ ...base, turnsExpected: 10, lostTokens: ANSWER });
  expect(choice).toMatchObject({ mode: "append", replaceCost: 3215, appendCost: 2900 });
  expect(choice.explanation).toBe(
    "append: over 10 turns 200 tokens a bar cost 3215 tokens replaced (150 a turn are not found in the cache) and 2900 kept",
  );
});

test("a bar that costs the same either way is replaced", () => {
  expect(chooseBarMode({ ...base, turnsExpected: 1, lostTokens: ANSWER }).mode).toBe("replace");
  expect(chooseBarMode({ ...base, barTokens: 0, turnsExpected: 0, lostTokens: 0 }).mode).toBe("replace");
});
