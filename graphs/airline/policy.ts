import type { Action } from "./arguments.ts";
import { isSameLeg } from "./write-tools.ts";
import { entryOf, type Cabin, type Leg, type Reservation, type User, type World } from "./world.ts";

type ArgsOf<Name extends Action["tool"]> = Extract<Action, { tool: Name }>["args"];

const DAY_MS = 86_400_000;
const MAX_PASSENGERS = 5;
/** How many payment methods of a kind one reservation may use. */
const MAX_PAYMENTS = { certificate: 1, credit_card: 1, gift_card: 3 };
/** Free checked bags for each passenger. */
const FREE_BAGS: Readonly<Record<User["membership"], Readonly<Record<Cabin, number>>>> = {
  regular: { basic_economy: 0, economy: 1, business: 2 },
  silver: { basic_economy: 1, economy: 2, business: 3 },
  gold: { basic_economy: 2, economy: 3, business: 3 },
};
/** What a certificate may be worth for each passenger: a delayed flight, a cancelled one. */
const COMPENSATIONS = [50, 100];

/**
 * What the airline's rules say to an action: yes, no, or no unless a colleague makes an exception. Only
 * what the bookings tell is judged here: whether the user is ill, or agrees, no record says.
 */
export type Verdict = { readonly is: "allowed" } | { readonly is: "refused" | "exceptional"; readonly because: string };

const ALLOWED: Verdict = { is: "allowed" };
const refused = (because: string): Verdict => ({ is: "refused", because });
const exceptional = (because: string): Verdict => ({ is: "exceptional", because });

/**
 * Judges an action by the airline's rules. Pure.
 *
 * @param userId who is talking; what belongs to others is out of bounds.
 */
export function judge(action: Action, userId: string, world: World): Verdict {
  const user = entryOf(world.users, userId);
  if (!user) return refused(`there is no user ${userId}`);
  if (action.tool === "book_reservation" || action.tool === "send_certificate") {
    if (action.args.user_id !== userId) return refused("it is for another user");
    return action.tool === "book_reservation"
      ? judgeBooking(action.args, user)
      : judgeCertificate(action.args, user, world);
  }
  const reservation = entryOf(world.reservations, action.args.reservation_id);
  if (!reservation) return refused(`there is no reservation ${action.args.reservation_id}`);
  if (reservation.user_id !== userId) return refused("the reservation belongs to another user");
  if (reservation.status === "cancelled") return refused("the reservation is cancelled already");
  return judgeChange(action, reservation, user, world);
}

function judgeChange(
  action: Exclude<Action, { tool: "book_reservation" | "send_certificate" }>,
  reservation: Reservation,
  user: User,
  world: World,
): Verdict {
  const count = reservation.passengers.length;
  switch (action.tool) {
    case "cancel_reservation":
      return judgeCancellation(reservation, world);
    case "update_reservation_flights":
      return judgeFlights(action.args, reservation, world);
    case "update_reservation_passengers":
      return action.args.passengers.length === count ? ALLOWED : refused("the number of passengers cannot change");
    case "update_reservation_baggages":
      if (action.args.total_baggages < reservation.total_baggages) return refused("bags can be added, not removed");
      return judgeBags(action.args, cabinOf(reservation, world), count, user);
  }
}

function judgeBooking(args: ArgsOf<"book_reservation">, user: User): Verdict {
  if (args.passengers.length > MAX_PASSENGERS) return refused(`a reservation has at most ${MAX_PASSENGERS} passengers`);
  const ids = args.payment_methods.map(({ payment_id: id }) => id);
  if (new Set(ids).size < ids.length) return refused("a payment method is used twice");
  for (const [source, most] of Object.entries(MAX_PAYMENTS)) {
    const used = ids.filter((id) => user.payment_methods[id]?.source === source);
    if (used.length > most) return refused(`a reservation can use at most ${most} ${source.replace("_", " ")}`);
  }
  return judgeBags(args, args.cabin, args.passengers.length, user);
}

function judgeBags(
  bags: { readonly total_baggages: number; readonly nonfree_baggages: number },
  cabin: Cabin,
  passengers: number,
  { membership }: User,
): Verdict {
  const due = Math.max(0, bags.total_baggages - FREE_BAGS[membership][cabin] * passengers);
  return bags.nonfree_baggages >= due ? ALLOWED : refused(`of ${bags.total_baggages} bags ${due} have to be paid for`);
}

function judgeFlights(args: ArgsOf<"update_reservation_flights">, reservation: Reservation, world: World): Verdict {
  const { flights } = reservation;
  const isSameTrip = flights.length === args.flights.length && args.flights.every((leg) => isAmong(leg, flights));
  if (isSameTrip) return ALLOWED;
  if (cabinOf(reservation, world) === "basic_economy") {
    return refused("basic economy flights cannot be changed, only their cabin");
  }
  return endsOf(flights, world) === endsOf(args.flights, world)
    ? ALLOWED
    : refused("where a trip begins and ends cannot change");
}

function isAmong(leg: Leg, flights: readonly Leg[]): boolean {
  return flights.some((booked) => isSameLeg(booked, leg));
}

/** Where a trip begins and ends. A round trip may turn at another airport: JFK for LGA is right in one of the tasks. */
function endsOf(legs: readonly Leg[], { flights }: World): string {
  const [first, last] = [legs[0], legs.at(-1)].map((leg) => leg && flights[leg.flight_number]);
  return `${first?.origin} to ${last?.destination}`;
}

function judgeCancellation(reservation: Reservation, world: World): Verdict {
  const statuses = reservation.flights.map((leg) => world.flights[leg.flight_number]?.dates[leg.date]?.status);
  if (statuses.some((status) => status === "landed" || status === "flying")) {
    return exceptional("one of its flights has been used");
  }
  const isFresh = Date.parse(world.now) - Date.parse(reservation.created_at) <= DAY_MS;
  const isBusiness = cabinOf(reservation, world) === "business";
  if (isFresh || isBusiness || reservation.insurance === "yes" || statuses.includes("cancelled")) return ALLOWED;
  return exceptional("economy without insurance is cancelled only within 24 hours, or where the airline cancelled");
}

function judgeCertificate({ amount }: ArgsOf<"send_certificate">, user: User, world: World): Verdict {
  const isDue = user.reservations
    .flatMap((id) => world.reservations[id] ?? [])
    .filter(({ cabin, insurance }) => user.membership !== "regular" || insurance === "yes" || cabin === "business")
    .some(({ passengers }) => COMPENSATIONS.some((each) => each * passengers.length === amount));
  return isDue ? ALLOWED : refused(`no reservation of this user can bring a certificate of ${amount}`);
}

/** The cabin that a reservation has by now: the airline's system goes on showing the one that it was booked in. */
function cabinOf({ reservation_id: id, cabin }: Reservation, { changes }: World): Cabin {
  const moves = changes.filter((change) => change.tool === "update_reservation_flights");
  return moves.findLast(({ args }) => args.reservation_id === id)?.args.cabin ?? cabin;
}
