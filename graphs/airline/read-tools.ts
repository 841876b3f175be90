import { defineTool } from "statecard";
import { z } from "zod";
import { calculate } from "./calculate.ts";
import { found, worldOf, type Flight, type FlightDay, type World } from "./world.ts";

const AIRPORTS = {
  SFO: "San Francisco",
  JFK: "New York",
  LAX: "Los Angeles",
  ORD: "Chicago",
  DFW: "Dallas",
  DEN: "Denver",
  SEA: "Seattle",
  ATL: "Atlanta",
  MIA: "Miami",
  BOS: "Boston",
  PHX: "Phoenix",
  IAH: "Houston",
  LAS: "Las Vegas",
  MCO: "Orlando",
  EWR: "Newark",
  CLT: "Charlotte",
  MSP: "Minneapolis",
  DTW: "Detroit",
  PHL: "Philadelphia",
  LGA: "LaGuardia",
};

const route = z.object({
  origin: z.string().describe("IATA code"),
  destination: z.string().describe("IATA code"),
  date: z.string().describe("YYYY-MM-DD"),
});

/** The tools that only look, calculate or think. */
export const readTools = {
  get_user_details: defineTool({
    description: "A user's profile: payment methods, membership, reservations.",
    parameters: z.object({ user_id: z.string() }),
    effect: "read",
    run: ({ user_id: id }, { clients }) => found(worldOf(clients).users, id, "user"),
  }),
  get_reservation_details: defineTool({
    description: "A reservation: flights, cabin, passengers, baggage, insurance, payments.",
    parameters: z.object({ reservation_id: z.string() }),
    effect: "read",
    run: ({ reservation_id: id }, { clients }) => found(worldOf(clients).reservations, id, "reservation"),
  }),
  search_direct_flight: defineTool({
    description: "Direct flights between two airports that can be booked on a date, with seats and prices.",
    parameters: route,
    effect: "read",
    run: ({ origin, destination, date }, { clients }) =>
      flightsOf(worldOf(clients)).flatMap((flight) => {
        const day = bookableDay(flight, date);
        return flight.origin === origin && flight.destination === destination && day ? [offer(flight, day)] : [];
      }),
  }),
  search_onestop_flight: defineTool({
    description: "Pairs of flights with one stop between two airports that can be booked on a date.",
    parameters: route,
    effect: "read",
    run: ({ origin, destination, date }, { clients }) => {
      const flights = flightsOf(worldOf(clients));
      const starts = flights.filter((flight) => flight.origin === origin);
      const ends = flights.filter((flight) => flight.destination === destination);
      return starts.flatMap((first) => ends.flatMap((second) => connection(first, second, date)));
    },
  }),
  list_all_airports: defineTool({
    description: "All airports and their cities.",
    parameters: z.object({}),
    effect: "read",
    run: () => AIRPORTS,
  }),
  calculate: defineTool({
    description: "Calculates numbers with + - * / and parentheses.",
    parameters: z.object({ expression: z.string() }),
    effect: "none",
    run: ({ expression }) => calculate(expression),
  }),
  think: defineTool({
    description: "A place to think; nothing happens.",
    parameters: z.object({ thought: z.string() }),
    effect: "none",
    run: () => "",
  }),
  // It changes nothing in the bookings: the summary is in the task, for whoever takes over.
  transfer_to_human_agents: defineTool({
    description: "Hands the user over to a human agent, with a summary of the issue.",
    parameters: z.object({ summary: z.string() }),
    effect: "none",
    run: () => "Transfer successful",
  }),
};

function flightsOf(world: World): readonly Flight[] {
  return Object.values(world.flights);
}

type BookableDay = Extract<FlightDay, { status: "available" }>;

function bookableDay(flight: Flight, date: string): BookableDay | null {
  const day = flight.dates[date];
  return day?.status === "available" ? day : null;
}

/** A flight as a search shows it: what holds on every date, and what holds on this one. */
function offer({ dates: _dates, ...flight }: Flight, day: BookableDay): object {
  return { ...flight, ...day };
}

/**
 * Two flights as one trip, or nothing where the second leaves before the first has arrived. Where it
 * leaves the day after, seats and prices are still those of the first day, as the recorded system shows them.
 */
function connection(first: Flight, second: Flight, date: string): readonly object[] {
  const arrival = first.scheduled_arrival_time_est;
  if (first.destination !== second.origin || arrival > second.scheduled_departure_time_est) return [];
  const secondDate = arrival.includes("+1") ? nextDay(date) : date;
  const [firstDay, secondDay] = [bookableDay(first, date), bookableDay(second, date)];
  if (!firstDay || !secondDay || !bookableDay(second, secondDate)) return [];
  return [
    [
      { ...offer(first, firstDay), date },
      { ...offer(second, secondDay), date: secondDate },
    ],
  ];
}

function nextDay(date: string): string {
  const day = new Date(`${date}T00:00:00Z`);
  day.setUTCDate(day.getUTCDate() + 1);
  return day.toISOString().slice(0, 10);
}
