import { defineTool, type Tool } from "statecard";
import type { z } from "zod";
import {
  bookArguments,
  cancelArguments,
  certificateArguments,
  updateBaggagesArguments,
  updateFlightsArguments,
  updatePassengersArguments,
  type Action,
} from "./arguments.ts";
import { found, worldOf, type BookedLeg, type Cabin, type Leg, type Reservation, type World } from "./world.ts";

const BAG_PRICE = 50;
const INSURANCE_PRICE = 30;
// The ids that the recorded runs got; after these there is none.
const NEW_RESERVATIONS = ["HATHAT", "HATHAU", "HATHAV"];
const NEW_CERTIFICATES = ["certificate_3221322", "certificate_3221323", "certificate_3221324"];

/**
 * The tools that change the bookings. Like the airline's own system they check seats and money and no
 * more than that: the airline's rules are the workflow's. None of them runs without an approval.
 */
export const writeTools = {
  book_reservation: write("book_reservation", "Books a reservation.", bookArguments, book),
  cancel_reservation: write("cancel_reservation", "Cancels a whole reservation.", cancelArguments, cancel),
  update_reservation_flights: write(
    "update_reservation_flights",
    "Changes the flights or the cabin of a reservation.",
    updateFlightsArguments,
    updateFlights,
  ),
  update_reservation_passengers: write(
    "update_reservation_passengers",
    "Changes who flies; the number stays.",
    updatePassengersArguments,
    updatePassengers,
  ),
  update_reservation_baggages: write(
    "update_reservation_baggages",
    "Changes the checked bags of a reservation.",
    updateBaggagesArguments,
    updateBaggages,
  ),
  send_certificate: write("send_certificate", "Sends a user a travel certificate.", certificateArguments, certify),
};

function write<S extends z.ZodType>(
  name: Action["tool"],
  description: string,
  parameters: S,
  change: (world: World, args: z.infer<S>) => unknown,
): Tool<S> {
  return defineTool({
    description,
    parameters,
    effect: "write",
    approve: true,
    run: (args, { clients }) => {
      const world = worldOf(clients);
      const result = change(world, args);
      world.changes.push({ tool: name, args } as Action);
      return result;
    },
  });
}

function book(world: World, args: z.infer<typeof bookArguments>): Reservation {
  const user = found(world.users, args.user_id, "user");
  const { flights, passengers, payment_methods: payments, ...rest } = args;
  const legs = flights.map((leg) => bookableLeg(world, leg, args.cabin, passengers.length));
  const insured = args.insurance === "yes" ? INSURANCE_PRICE * passengers.length : 0;
  const price = priceOf(legs) * passengers.length + insured + BAG_PRICE * args.nonfree_baggages;
  for (const { payment_id: id, amount } of payments) {
    const method = found(user.payment_methods, id, `payment method ${id}`);
    if (method.source !== "credit_card" && method.amount < amount) {
      throw new Error(`not enough balance in payment method ${id}`);
    }
  }
  const paid = payments.reduce((sum, { amount }) => sum + amount, 0);
  if (paid !== price) throw new Error(`payment amount does not add up, total price is ${price}, but paid ${paid}`);

  const id = firstFree(NEW_RESERVATIONS, world.reservations, "reservation");
  for (const { payment_id, amount } of payments) {
    const method = user.payment_methods[payment_id];
    if (method?.source === "gift_card") method.amount -= amount;
    // What is left of a certificate is lost.
    if (method?.source === "certificate") delete user.payment_methods[payment_id];
  }
  const reservation: Reservation = {
    reservation_id: id,
    ...rest,
    flights: legs,
    passengers,
    payment_history: [...payments],
    created_at: world.now,
  };
  world.reservations[id] = reservation;
  user.reservations.push(id);
  return reservation;
}

function cancel(world: World, { reservation_id: id }: z.infer<typeof cancelArguments>): Reservation {
  const reservation = found(world.reservations, id, "reservation");
  const refunds = reservation.payment_history.map(({ payment_id, amount }) => ({ payment_id, amount: -amount }));
  reservation.payment_history.push(...refunds);
  reservation.status = "cancelled";
  return reservation;
}

function updateFlights(world: World, args: z.infer<typeof updateFlightsArguments>): Reservation {
  const reservation = found(world.reservations, args.reservation_id, "reservation");
  const { cabin, passengers } = reservation;
  const legs = args.flights.map((leg) => {
    const kept = cabin === args.cabin && reservation.flights.find((booked) => isSameLeg(booked, leg));
    // What is kept keeps its price.
    return kept || bookableLeg(world, leg, args.cabin, passengers.length);
  });
  const due = (priceOf(legs) - priceOf(reservation.flights)) * passengers.length;
  pay(world, reservation, args.payment_id, due);
  reservation.flights = legs;
  // The cabin stays as it was booked: the airline's system does not show a new one, in the recordings neither.
  return reservation;
}

function updatePassengers(world: World, args: z.infer<typeof updatePassengersArguments>): Reservation {
  const reservation = found(world.reservations, args.reservation_id, "reservation");
  if (args.passengers.length !== reservation.passengers.length) throw new Error("number of passengers does not match");
  reservation.passengers = args.passengers;
  return reservation;
}

function updateBaggages(world: World, args: z.infer<typeof updateBaggagesArguments>): Reservation {
  const reservation = found(world.reservations, args.reservation_id, "reservation");
  const due = BAG_PRICE * Math.max(0, args.nonfree_baggages - reservation.nonfree_baggages);
  pay(world, reservation, args.payment_id, due);
  reservation.total_baggages = args.total_baggages;
  reservation.nonfree_baggages = args.nonfree_baggages;
  return reservation;
}

function certify(world: World, { user_id: id, amount }: z.infer<typeof certificateArguments>): string {
  const methods = found(world.users, id, "user").payment_methods;
  const certificate = firstFree(NEW_CERTIFICATES, methods, "certificate");
  methods[certificate] = { source: "certificate", amount, id: certificate };
  return `Certificate ${certificate} added to user ${id} with amount ${amount}.`;
}

/** Takes what a change costs, or gives back what it saves. */
function pay(world: World, reservation: Reservation, paymentId: string, due: number): void {
  const method = found(found(world.users, reservation.user_id, "user").payment_methods, paymentId, "payment method");
  if (method.source === "certificate") throw new Error("certificate cannot be used to update reservation");
  if (method.source === "gift_card") {
    if (method.amount < due) throw new Error("gift card balance is not enough");
    method.amount -= due;
  }
  if (due !== 0) reservation.payment_history.push({ payment_id: paymentId, amount: due });
}

function bookableLeg(world: World, { flight_number, date }: Leg, cabin: Cabin, passengers: number): BookedLeg {
  const { origin, destination, dates } = found(world.flights, flight_number, `flight ${flight_number}`);
  const day = dates[date];
  if (!day) throw new Error(`flight ${flight_number} not found on date ${date}`);
  if (day.status !== "available") throw new Error(`flight ${flight_number} not available on date ${date}`);
  if (day.available_seats[cabin] < passengers) throw new Error(`not enough seats on flight ${flight_number}`);
  return { flight_number, date, price: day.prices[cabin], origin, destination };
}

function priceOf(legs: readonly BookedLeg[]): number {
  return legs.reduce((sum, { price }) => sum + price, 0);
}

/** Whether two legs are the same flight on the same date. */
export function isSameLeg(a: Leg, b: Leg): boolean {
  return a.flight_number === b.flight_number && a.date === b.date;
}

function firstFree(ids: readonly string[], taken: Readonly<Record<string, unknown>>, what: string): string {
  const free = ids.find((id) => !Object.hasOwn(taken, id));
  if (free === undefined) throw new Error(`no ${what} number is free`);
  return free;
}
