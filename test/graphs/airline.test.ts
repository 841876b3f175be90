import { readFileSync } from "node:fs";
import { Command, INTERRUPT } from "@langchain/langgraph";
import { answer, compile, describeTask, signedIn, sqliteStore, type Verdict } from "statecard";
import { scriptedModel, type ScriptedAnswer } from "statecard/testing";
import { describe, expect, test } from "vitest";
import type { Action } from "../../graphs/airline/arguments.ts";
import { judge } from "../../graphs/airline/policy.ts";
import { cabinIn, flightsIn, reservationIn, userIn, wishIn } from "../../graphs/airline/reading.ts";
import { airlineRules } from "../../graphs/airline/rules.ts";
import { airline } from "../../graphs/airline/workflow.ts";
import { airlineFolder, airlineWorld } from "../../graphs/airline/world.ts";
import { mermaidOf } from "../../src/cli/graph.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";
import { adasBooking } from "../support/airline.ts";

const [ADA, BEN] = ["ada_marin_1001", "ben_osei_1002"];
const as = (name: string) => ({ configurable: { thread_id: "t", ...signedIn(name) } });
const untouched = airlineWorld(airlineFolder(""));

function open(script?: readonly ScriptedAnswer[]) {
  const world = airlineWorld(airlineFolder(""));
  const model = script ? scriptedModel([...script]) : airlineRules();
  const graph = compile(airline, { model, store: sqliteStore(":memory:"), clients: { world } });
  const task = () => describeTask(graph.runtime.store, "t");
  /** Starts a task and answers what it asks, each as the person who says it. */
  const talk = async (message: string, ...replies: readonly (readonly [string, string | Verdict])[]) => {
    let result = await graph.invoke({ message }, as("somebody"));
    for (const [who, reply] of replies) result = await graph.invoke(answer(result, reply), as(who));
    return result;
  };
  const refusals = async () => (await graph.runtime.store.events("t")).filter(({ kind }) => kind === "refused");
  return { world, graph, task, talk, refusals };
}

const cancelling = (reservation_id: string, userId: string): readonly object[] => [
  { patch: { userId }, next: "gather" },
  { next: "propose" },
  { patch: { proposal: { tool: "cancel_reservation", args: { reservation_id } } }, next: "review" },
];
const ending = { patch: { outcome: "it ends" }, next: "done" };

test("its README shows its table", () => {
  expect(readFileSync("graphs/airline/README.md", "utf8")).toContain(mermaidOf(anyWorkflow(airline)));
});

describe("offline", () => {
  test("a reservation is cancelled once that is confirmed", async () => {
    const { world, talk } = open();
    const paused = await talk("please cancel AB12CD, I am ill", [ADA, ADA]);
    expect(paused[INTERRUPT]?.[0]?.value?.requests).toMatchObject([
      { kind: "approval", tool: "cancel_reservation", args: { reservation_id: "AB12CD" } },
    ]);
    expect(world).toEqual(untouched);
  });

  test.each([
    ["a cancellation", ["cancel AB12CD, I am ill", [ADA, ADA], [ADA, "approve"]], "It is cancelled.", 1],
    ["a cabin", [`I am ${BEN}`, [BEN, "EF34GH"], [BEN, "economy please"], [BEN, "approve"]], "It is changed.", 1],
    ["a no", [`${ADA}: cancel AB12CD`, [ADA, "reject"]], "Nothing was changed: a person rejected it.", 0],
    ["another's", [`${ADA}: cancel EF34GH`], "I cannot do that: the reservation belongs to another user.", 0],
    ["nobody known", ["hello", [ADA, "hm"], [ADA, "what?"]], "We did not find out what to do. Nothing was changed.", 0],
    [
      "an unknown user",
      ["I am no_one_7", [ADA, ADA], [ADA, "cancel XX00XX"], [ADA, "AB12CD"], [ADA, "cancel it"], [ADA, "approve"]],
      "It is cancelled.",
      1,
    ],
    ["a person", [`${ADA}: AB12CD, I want a person`], "handed to a human agent", 0],
  ] as readonly (readonly [string, Parameters<ReturnType<typeof open>["talk"]>, string, number])[])(
    "%s",
    async (_name, conversation, outcome, changes) => {
      const { world, talk } = open();
      const done = await talk(...conversation);
      expect(done).toMatchObject({ outcome, execution: { status: "completed", step: "done" } });
      expect(world.changes).toHaveLength(changes);
    },
  );

  test("the price of a cabin is paid with a card of the profile", async () => {
    const { world, talk } = open();
    await talk(`I am ${BEN}, upgrade EF34GH to business`, [BEN, "approve"]);
    expect(world.reservations.EF34GH).toMatchObject({
      flights: [{ flight_number: "SKY301", date: "2024-05-20", price: 190 }],
      payment_history: [{ amount: 40 }, { payment_id: "credit_card_1000004", amount: 150 }],
    });
  });
});

describe("a write", () => {
  test("has no place before the review, whatever the model says", async () => {
    const write = { calls: [{ tool: "cancel_reservation", args: { reservation_id: "AB12CD" } }] };
    const { world, talk, refusals } = open([
      { patch: { userId: ADA }, next: "gather" },
      write,
      { next: "perform" },
      ending,
    ]);
    await talk("hello");
    expect((await refusals()).map(({ data }) => data.code)).toEqual(["UNKNOWN_TOOL", "ILLEGAL_TRANSITION"]);
    expect(world).toEqual(untouched);
  });

  test("has no place before it is known who is talking", async () => {
    const { world, talk, refusals } = open([{ next: "gather" }, { next: "propose" }, ending]);
    await talk("cancel AB12CD");
    expect((await refusals()).map(({ data }) => data.code)).toEqual(["REQUIRES", "ILLEGAL_TRANSITION"]);
    expect(world).toEqual(untouched);
  });

  test("that was edited is another one, and does not happen", async () => {
    const { world, talk } = open([...cancelling("AB12CD", ADA), ending]);
    const done = await talk("hello", [ADA, { type: "edit", args: { reservation_id: "EF34GH" } }]);
    expect(done).toMatchObject({ proposal: null, execution: { status: "completed" } });
    expect(world).toEqual(untouched);
  });

  test("that was confirmed is confirmed once: the same again is asked again", async () => {
    const bags = { reservation_id: "AB12CD", total_baggages: 3, nonfree_baggages: 0, payment_id: "gift_card_1000002" };
    const again = [
      { next: "propose" },
      { patch: { proposal: { tool: "update_reservation_baggages", args: bags } }, next: "review" },
    ];
    const { world, talk } = open([{ patch: { userId: ADA }, next: "gather" }, ...again, ...again, ending]);
    const second = await talk("hello", [ADA, "approve"]);
    expect(second[INTERRUPT]?.[0]?.value?.requests).toMatchObject([{ kind: "approval", args: bags }]);
    expect(world.changes).toHaveLength(1);
  });

  test("that fails is over: the model hears of it and goes on", async () => {
    const args = { reservation_id: "AB12CD", total_baggages: 9, nonfree_baggages: 3, payment_id: "gift_card_9" };
    const script = [
      { patch: { userId: ADA }, next: "gather" },
      { next: "propose" },
      { patch: { proposal: { tool: "update_reservation_baggages", args } }, next: "review" },
      (prompt: string) => {
        expect(prompt).toContain("payment method not found");
        return { next: "propose" };
      },
      { patch: { proposal: { tool: "cancel_reservation", args: { reservation_id: "AB12CD" } } }, next: "review" },
      ending,
    ];
    const { world, talk } = open(script);
    await talk("hello", [ADA, "approve"], [ADA, "approve"]);
    expect(world.changes).toMatchObject([{ tool: "cancel_reservation" }]);
  });

  test("that the rules forbid, and the bookings leave open, needs a colleague beside the user", async () => {
    const { world, graph, task, talk } = open([...cancelling("EF34GH", BEN), ending]);
    const one = await talk("hello", [BEN, "approve"]);
    expect(world).toEqual(untouched);
    expect(await task()).toMatchObject({
      state: { exception: expect.stringContaining("economy without insurance") as unknown },
      waiting: [{ count: 2, approvedBy: [BEN] }],
    });
    await expect(graph.invoke(answer(one, "approve"), as(BEN ?? ""))).rejects.toMatchObject({
      code: "ALREADY_APPROVED",
    });
    await graph.invoke(answer(one, "approve"), as("a colleague"));
    expect(world.reservations.EF34GH?.status).toBe("cancelled");
  });

  test("is not confirmed by anything but a clear yes", async () => {
    const { world, graph, talk } = open(cancelling("AB12CD", ADA));
    await talk("hello");
    for (const resume of ["I would like that", "yes, if it is free", { type: "response", args: "yes" }]) {
      await graph.invoke(new Command({ resume }), as(ADA ?? "")).catch(() => null);
    }
    expect(world).toEqual(untouched);
  });
});

describe("the airline's rules", () => {
  const book = adasBooking;
  const card = { payment_id: "credit_card_1000001" };
  const certificate = { payment_id: "certificate_1000003", amount: 50 };
  const flights = (reservation_id: string, ...numbers: readonly string[]) => ({
    reservation_id,
    cabin: "economy",
    flights: numbers.map((flight_number) => ({
      flight_number,
      date: flight_number === "SKY102" ? "2024-05-27" : "2024-05-20",
    })),
    ...card,
  });
  const bags = (total_baggages: number, nonfree_baggages: number) => ({
    reservation_id: "AB12CD",
    total_baggages,
    nonfree_baggages,
    ...card,
  });

  test.each([
    [ADA, "book_reservation", book, "allowed"],
    [BEN, "book_reservation", book, "refused: it is for another user"],
    [ADA, "book_reservation", { ...book, total_baggages: 4 }, "refused: of 4 bags 1 have to be paid for"],
    [
      ADA,
      "book_reservation",
      { ...book, passengers: Array(6).fill(book.passengers[0]) },
      "refused: a reservation has at most 5",
    ],
    [
      ADA,
      "book_reservation",
      { ...book, payment_methods: [certificate, { ...certificate, payment_id: "certificate_1000006" }] },
      "refused: a reservation can use at most 1 certificate",
    ],
    [ADA, "cancel_reservation", { reservation_id: "AB12CD" }, "allowed"],
    [ADA, "cancel_reservation", { reservation_id: "EF34GH" }, "refused: the reservation belongs to another user"],
    [ADA, "cancel_reservation", { reservation_id: "NOTHING" }, "refused: there is no reservation NOTHING"],
    [BEN, "cancel_reservation", { reservation_id: "EF34GH" }, "exceptional: economy without insurance"],
    ["chloe_ruiz_1003", "cancel_reservation", { reservation_id: "JK56LM" }, "allowed"],
    ["no_one_7", "cancel_reservation", { reservation_id: "AB12CD" }, "refused: there is no user no_one_7"],
    [ADA, "update_reservation_flights", flights("AB12CD", "SKY101", "SKY102"), "allowed"],
    [ADA, "update_reservation_flights", flights("AB12CD", "SKY201", "SKY202", "SKY102"), "allowed"],
    [ADA, "update_reservation_flights", flights("AB12CD", "SKY101"), "refused: where a trip begins and ends"],
    [BEN, "update_reservation_flights", flights("EF34GH", "SKY301"), "allowed"],
    [
      BEN,
      "update_reservation_flights",
      flights("EF34GH", "SKY302"),
      "refused: basic economy flights cannot be changed",
    ],
    [
      ADA,
      "update_reservation_passengers",
      { reservation_id: "AB12CD", passengers: book.passengers },
      "refused: the number of",
    ],
    [ADA, "update_reservation_baggages", bags(6, 0), "allowed"],
    [ADA, "update_reservation_baggages", bags(7, 0), "refused: of 7 bags 1 have to be paid for"],
    [ADA, "update_reservation_baggages", bags(1, 0), "refused: bags can be added, not removed"],
    [ADA, "send_certificate", { user_id: ADA, amount: 100 }, "allowed"],
    [ADA, "send_certificate", { user_id: ADA, amount: 500 }, "refused: no reservation of this user"],
    [BEN, "send_certificate", { user_id: BEN, amount: 50 }, "refused: no reservation of this user"],
    [BEN, "send_certificate", { user_id: ADA, amount: 100 }, "refused: it is for another user"],
  ] as readonly (readonly [string, string, object, string])[])("%s, %s %j: %s", (user, tool, args, verdict) => {
    const judged = judge({ tool, args } as Action, user, untouched);
    expect(judged.is === "allowed" ? judged.is : `${judged.is}: ${judged.because}`).toMatch(new RegExp(`^${verdict}`));
  });

  test("a payment method counts once", () => {
    const args = { ...book, payment_methods: [...book.payment_methods, ...book.payment_methods] };
    const judged = judge({ tool: "book_reservation", args } as Action, ADA ?? "", untouched);
    expect(judged).toEqual({ is: "refused", because: "a payment method is used twice" });
  });

  test("what is cancelled, flown or fresh", () => {
    const cancel: Action = { tool: "cancel_reservation", args: { reservation_id: "EF34GH" } };
    const judged = (change: object) => {
      const world = airlineWorld(airlineFolder(""));
      Object.assign(world.reservations.EF34GH ?? {}, change);
      return judge(cancel, BEN ?? "", world).is;
    };
    expect(judged({ status: "cancelled" })).toBe("refused");
    expect(judged({ created_at: "2024-05-14T16:00:00" })).toBe("allowed");
    expect(judged({ created_at: "2024-05-14T14:00:00" })).toBe("exceptional");
    expect(judged({ cabin: "business" })).toBe("allowed");
    expect(judged({ cabin: "business", flights: [{ flight_number: "SKY101", date: "2024-05-14" }] })).toBe(
      "exceptional",
    );
  });

  test("an upgraded cabin counts, though the bookings go on showing the old one", () => {
    const upgrade: Action = { tool: "update_reservation_flights", args: flights("EF34GH", "SKY301") as never };
    const change: Action = {
      tool: "update_reservation_flights",
      args: flights("EF34GH", "SKY301", "SKY302", "SKY301") as never,
    };
    const world = airlineWorld(airlineFolder(""));
    expect(judge(change, BEN ?? "", world).is).toBe("refused");
    world.changes.push(upgrade);
    expect(judge(change, BEN ?? "", world).is).toBe("allowed");
  });
});

test("what a text says", () => {
  expect(userIn("I am Ada_Marin_1001.")).toBe("ada_marin_1001");
  expect(userIn("I am Ada Marin")).toBeNull();
  expect(reservationIn("it is AB12CD, please")).toBe("AB12CD");
  expect(reservationIn("PLEASE help")).toBeNull();
  expect(cabinIn("to Basic economy")).toBe("basic_economy");
  expect(wishIn("cancel it")).toBe("cancel");
  expect(wishIn("hello")).toBeNull();
  const legs = [{ flight_number: "SKY101", date: "2024-05-20" }];
  expect(flightsIn('[{"flight_number":"SKY101","date":"2024-05-20","price":180}]')).toEqual(legs);
  expect(flightsIn("LAX | JFK | SKY101 | 2024-05-20 | 180")).toEqual(legs);
});
