import { isDeepStrictEqual } from "node:util";
import { sqliteStore } from "statecard";
import { describe, expect, test } from "vitest";
import { airlineTools } from "../../graphs/airline/tools.ts";
import type { Tools } from "../../src/workflow/tool.ts";
import { consentOf, missingAirline, readRuns, type AirlineRun } from "../support/airline.ts";
import { replay, type Replay } from "../support/airline-agent.ts";

const missing = missingAirline();

/** These runs through the workflow, one after the other in one store. */
async function replayAll(runs: readonly AirlineRun[], consent?: () => "unclear"): Promise<readonly Replay[]> {
  const store = sqliteStore(":memory:");
  const replays: Replay[] = [];
  for (const run of runs) replays.push(await replay(run, store, consent));
  return replays;
}

/** What became of the writes of some runs. */
function countsOf(replays: readonly Replay[]): Readonly<Record<string, number>> {
  const count = (of: (replay: Replay) => number) => replays.reduce((sum, each) => sum + of(each), 0);
  const waiting = (what: Replay["waitsFor"]) => replays.filter(({ waitsFor }) => waitsFor === what).length;
  return {
    "before anybody knew who is talking": count(({ tooEarly }) => tooEarly.filter(isWrite).length),
    proposed: count(({ proposed }) => proposed),
    "not taken by the review": count(({ objections }) => objections.length),
    "confirmed by the user": count(({ confirmed }) => confirmed.length),
    "refused by the user": count(({ refused }) => refused),
    "never answered by the user": waiting("the user's yes"),
    "confirmed by the user, never by a colleague": waiting("a colleague's yes"),
    written: count(({ world }) => world.changes.length),
  };
}

/** What the workflow held back of a run, in a line; empty where it held back nothing. */
function heldBack({ run, objections, waitsFor, tooEarly }: Replay): readonly string[] {
  const reasons = [
    ...new Set(objections),
    ...(waitsFor === null ? [] : [`waits for ${waitsFor}`]),
    ...(tooEarly.some(isWrite) ? ["a write before anybody knew who is talking"] : []),
  ];
  return reasons.length > 0 ? [`${run.id}: ${reasons.join("; ")}`] : [];
}

const isWrite = ({ name }: { readonly name: string }) => (airlineTools as Tools)[name]?.effect === "write";

describe("the recorded runs in the workflow", { timeout: 600_000 }, () => {
  test("all 200: nothing is written that the user's latest turn is no explicit yes to", async ({ skip }) => {
    skip(missing !== null, missing ?? "");
    const replays = await replayAll(readRuns());
    for (const { run, world, confirmed } of replays) {
      // Each change uses up the confirmation of exactly that call.
      const left = [...confirmed];
      for (const change of world.changes) {
        const used = left.findIndex((call) => isDeepStrictEqual(call, change));
        expect([run.id, change, used]).not.toEqual([run.id, change, -1]);
        left.splice(0, used + 1);
      }
    }
    const counts = countsOf(replays);
    const rewarded = replays.filter(({ run }) => run.reward === 1).flatMap(heldBack);
    const lines = [...Object.entries(counts).map(([what, many]) => `${many} ${what}`), "Held back in rewarded runs:"];
    process.stdout.write(`Writes: ${[...lines, ...rewarded].join("\n  ")}\n`);
    expect(counts).toEqual({
      "before anybody knew who is talking": 10,
      proposed: 182,
      "not taken by the review": 25,
      "confirmed by the user": 128,
      "refused by the user": 0,
      "never answered by the user": 29,
      "confirmed by the user, never by a colleague": 23,
      // The other confirmed ones failed in the airline's own system: a sum that is not the price, no seats.
      written: 83,
    });
  });

  test("every fifth: nothing is written where no turn counts as a yes", async ({ skip }) => {
    skip(missing !== null, missing ?? "");
    const runs = readRuns().filter((_run, index) => index % 5 === 0);
    const replays = await replayAll(runs, () => "unclear");
    expect(replays.flatMap(({ world }) => world.changes)).toEqual([]);
    expect(countsOf(replays)["never answered by the user"]).toBeGreaterThan(10);
  });
});

test.each([
  ["Yes, please proceed with that booking. Thank you!", "yes"],
  ["That sounds good. Please go ahead and book the flights for Ivan.", "yes"],
  ["Oui, please proceed with the cancellation. Merci!", "yes"],
  ["Yes, but only if it is free.", "unclear"],
  ["Could we please proceed?", "unclear"],
  ["I'll go with the first option.", "unclear"],
  ["I would like to cancel all of these reservations.", "unclear"],
  ["Actually, I wanted HAT052.", "no"],
  ["No. Please proceed with the other one.", "no"],
])("consent: %s", (turn, consent) => {
  expect(consentOf(turn)).toBe(consent);
});
