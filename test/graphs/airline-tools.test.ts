import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import { calculate } from "../../graphs/airline/calculate.ts";
import { airlineFolder, airlineWorld } from "../../graphs/airline/world.ts";
import { airlineTools } from "../../graphs/airline/tools.ts";
import type { Tools } from "../../src/workflow/tool.ts";
import { adasBooking, callDirectly, missingAirline, readRuns, recordedWorld } from "../support/airline.ts";

const missing = missingAirline();
const small = airlineFolder("");

test("every call of the 200 recorded runs gives what was recorded", { timeout: 600_000 }, ({ skip }) => {
  skip(missing !== null, missing ?? "");
  const differences: string[] = [];
  let calls = 0;
  for (const { id, messages } of readRuns()) {
    const world = airlineWorld(recordedWorld);
    for (const [index, { role, content }] of messages.entries()) {
      // A result follows its call at once; the ids of calls occur twice in some runs.
      const call = messages[index - 1]?.toolCalls?.[0];
      if (role !== "tool" || !call) continue;
      calls += 1;
      const ours = callDirectly(world, call.name, call.args);
      if (!isDeepStrictEqual(ours, readRecorded(content))) differences.push(`${id} ${call.name}`);
    }
  }
  expect(differences).toEqual([]);
  expect(calls).toBe(1164);
});

/**
 * A recorded result as a value; texts stay texts, numbers as well. The one exception: the world's files
 * are newer than the recordings, and call the `province` of an address `state`.
 */
function readRecorded(content: string): unknown {
  if (!/^[[{]/.test(content)) return content;
  const value = JSON.parse(content) as { address?: { province?: string } };
  if (!value.address?.province) return value;
  const { province, ...address } = value.address;
  return { ...value, address: { ...address, state: province } };
}

describe("the small world", () => {
  test("has the recorded one's shape", ({ skip }) => {
    skip(missing !== null, missing ?? "");
    const [ours, recorded] = [airlineWorld(small), airlineWorld(recordedWorld)];
    for (const table of ["flights", "reservations", "users"] as const) {
      const keysOf = (entries: object) => Object.keys(Object.values(entries)[0] as object).toSorted();
      expect(keysOf(ours[table])).toEqual(keysOf(recorded[table]));
    }
  });

  test("agrees with itself: every reservation's user, flights, price and airports are there", () => {
    const { flights, reservations, users } = airlineWorld(small);
    const cities = callDirectly(airlineWorld(small), "list_all_airports", {}) as object;
    for (const [id, { user_id, flights: legs, payment_history, passengers, ...rest }] of Object.entries(reservations)) {
      expect(rest.reservation_id).toBe(id);
      expect(users[user_id]?.reservations).toContain(id);
      expect(Object.keys(users[user_id]?.payment_methods ?? {})).toContain(payment_history[0]?.payment_id);
      for (const leg of legs) {
        expect(flights[leg.flight_number]).toMatchObject({ origin: leg.origin, destination: leg.destination });
        expect(Object.keys(flights[leg.flight_number]?.dates ?? {})).toContain(leg.date);
        expect(Object.keys(cities)).toContain(leg.origin);
      }
      const price = legs.reduce((sum, leg) => sum + leg.price, 0) * passengers.length;
      const insured = rest.insurance === "yes" ? 30 * passengers.length : 0;
      expect(payment_history[0]?.amount).toBe(price + insured);
    }
  });

  test("each copy is one of its own", () => {
    const [one, other] = [airlineWorld(small), airlineWorld(small)];
    callDirectly(one, "cancel_reservation", { reservation_id: "AB12CD" });
    expect(one.reservations.AB12CD?.status).toBe("cancelled");
    expect(other).toEqual(airlineWorld(small));
  });

  test("STATECARD_DATA without an airline in it gives the small world", () => {
    expect(airlineFolder("no/such/folder")).toBe(small);
  });
});

test("what fails changes nothing", () => {
  const world = airlineWorld(small);
  const book = {
    ...adasBooking,
    payment_methods: [{ payment_id: "gift_card_1000002", amount: 180 }],
    total_baggages: 0,
  };
  const failing: readonly (readonly [string, object, string])[] = [
    ["book_reservation", book, "not enough balance in payment method gift_card_1000002"],
    ["book_reservation", { ...book, user_id: "nobody" }, "user not found"],
    ["book_reservation", { ...book, payment_methods: [] }, "payment amount does not add up"],
    ["book_reservation", { ...book, flights: [{ flight_number: "SKY999", date: "2024-05-20" }] }, "flight SKY999 not"],
    ["book_reservation", { ...book, flights: [{ flight_number: "SKY101", date: "2024-06-01" }] }, "not found on date"],
    ["book_reservation", { ...book, flights: [{ flight_number: "SKY101", date: "2024-05-14" }] }, "not available"],
    ["cancel_reservation", { reservation_id: "constructor" }, "reservation not found"],
    [
      "update_reservation_passengers",
      { reservation_id: "AB12CD", passengers: book.passengers },
      "number of passengers",
    ],
    ["send_certificate", { user_id: "nobody", amount: 5 }, "user not found"],
  ];
  for (const [tool, args, error] of failing) {
    expect(callDirectly(world, tool, args as Record<string, unknown>)).toMatch(new RegExp(`^Error: .*${error}`));
  }
  expect(world).toEqual(airlineWorld(small));
});

test.each([
  [
    "update_reservation_baggages",
    { reservation_id: "AB12CD", total_baggages: 2, nonfree_baggages: -1, payment_id: "x" },
  ],
  ["update_reservation_passengers", { reservation_id: "AB12CD", passengers: [] }],
  ["send_certificate", { user_id: "ada_marin_1001", amount: -5 }],
])("%s takes no arguments that turn money round or make no sense", (name, args) => {
  expect((airlineTools as Tools)[name]?.parameters.safeParse(args).success).toBe(false);
});

test("only looking is done without an approval", () => {
  for (const [name, { effect, approve }] of Object.entries(airlineTools)) {
    expect([name, approve]).toEqual([name, effect === "write" ? true : undefined]);
  }
});

describe("calculate", () => {
  test.each([
    ["152 + 103", "255.0"],
    ["2 + 3 * 4", "14.0"],
    ["(2 + 3) * -4", "-20.0"],
    ["10 / 4", "2.5"],
    ["1 / 3", "0.33"],
    ["7 - 2 - 1", "4.0"],
    [".5 + 1.", "1.5"],
  ])("%s is %s", (expression, value) => {
    expect(calculate(expression)).toBe(value);
  });

  test.each(["process.exit()", "1 +", "(1", "1 2", "", "1 / 0", "2 ** 3"])("takes no other text: %s", (expression) => {
    expect(() => calculate(expression)).toThrow();
  });
});
