import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Action } from "./arguments.ts";

// The names below are those of the recorded data (tau-bench), as they stand in its files.

export type Cabin = "basic_economy" | "economy" | "business";

/** A flight on one date: seats and prices only while it can be booked. */
export type FlightDay =
  | {
      readonly status: "available";
      readonly available_seats: Readonly<Record<Cabin, number>>;
      readonly prices: Readonly<Record<Cabin, number>>;
    }
  | { readonly status: "on time" | "delayed" | "flying" | "landed" | "cancelled" };

export interface Flight {
  readonly flight_number: string;
  readonly origin: string;
  readonly destination: string;
  readonly scheduled_departure_time_est: string;
  readonly scheduled_arrival_time_est: string;
  readonly dates: Readonly<Record<string, FlightDay>>;
}

export interface Leg {
  readonly flight_number: string;
  readonly date: string;
}

export interface BookedLeg extends Leg {
  readonly origin: string;
  readonly destination: string;
  readonly price: number;
}

interface Passenger {
  readonly first_name: string;
  readonly last_name: string;
  readonly dob: string;
}

interface Payment {
  readonly payment_id: string;
  readonly amount: number;
}

export interface Reservation {
  readonly reservation_id: string;
  readonly user_id: string;
  readonly origin: string;
  readonly destination: string;
  readonly flight_type: "one_way" | "round_trip";
  readonly cabin: Cabin;
  flights: readonly BookedLeg[];
  passengers: readonly Passenger[];
  readonly payment_history: Payment[];
  readonly created_at: string;
  total_baggages: number;
  nonfree_baggages: number;
  readonly insurance: "yes" | "no";
  status?: "cancelled";
}

type PaymentMethod =
  | { readonly source: "credit_card"; readonly id: string; readonly brand: string; readonly last_four: string }
  | { readonly source: "gift_card" | "certificate"; readonly id: string; amount: number };

export interface User {
  readonly name: { readonly first_name: string; readonly last_name: string };
  readonly address: Readonly<Record<string, string>>;
  readonly email: string;
  readonly dob: string;
  readonly payment_methods: Record<string, PaymentMethod>;
  readonly saved_passengers: readonly Passenger[];
  readonly membership: "regular" | "silver" | "gold";
  readonly reservations: string[];
}

/** The airline's data in memory. Each graph has a copy of its own. */
export interface World {
  /** The time at which everything here happens. */
  readonly now: string;
  readonly flights: Readonly<Record<string, Flight>>;
  readonly reservations: Record<string, Reservation>;
  readonly users: Record<string, User>;
  /** Every write that happened, in order. */
  readonly changes: Action[];
}

const NOW = "2024-05-15T15:00:00";
const BUNDLED = fileURLToPath(new URL("./world/", import.meta.url));

/** The folder `tau-airline` of a data folder where there is one, else the small world of this example. */
export function airlineFolder(data: string | undefined = process.env.STATECARD_DATA): string {
  const recorded = data ? join(data, "tau-airline") : "";
  return recorded !== "" && existsSync(join(recorded, "flights.json")) ? recorded : BUNDLED;
}

/** A fresh copy of the world in a folder: flights.json, reservations.json and users.json. */
export function airlineWorld(folder: string = airlineFolder()): World {
  const { flights, reservations, users } = readWorld(folder);
  return {
    now: NOW,
    flights,
    reservations: JSON.parse(reservations) as World["reservations"],
    users: JSON.parse(users) as World["users"],
    changes: [],
  };
}

/** The world among a task's clients. */
export function worldOf({ world }: Readonly<Record<string, unknown>>): World {
  if (typeof world === "object" && world !== null && "reservations" in world && "changes" in world) {
    return world as World;
  }
  throw new TypeError(
    "clients.world is no airline world: pass compile(airline, { clients: { world: airlineWorld() } })",
  );
}

/** An entry of one of the world's tables; ids come from outside and may be any text. */
export function entryOf<T>(table: Readonly<Record<string, T>>, id: string): T | undefined {
  return Object.hasOwn(table, id) ? table[id] : undefined;
}

/** @throws where there is no such entry. */
export function found<T>(table: Readonly<Record<string, T>>, id: string, what: string): T {
  const entry = entryOf(table, id);
  if (entry === undefined) throw new Error(`${what} not found`);
  return entry;
}

/** What copies are made from. No tool changes a flight, so all copies share those; the rest is kept as text. */
interface Stored {
  readonly flights: World["flights"];
  readonly reservations: string;
  readonly users: string;
}
const known = new Map<string, Stored>();

function readWorld(folder: string): Stored {
  const before = known.get(folder);
  if (before) return before;
  const read = (name: string) => readFileSync(join(folder, name), "utf8");
  const stored: Stored = {
    flights: JSON.parse(read("flights.json")) as World["flights"],
    reservations: read("reservations.json"),
    users: read("users.json"),
  };
  known.set(folder, stored);
  return stored;
}
