import { z } from "zod";

// The arguments of the writes; a proposal in the state has the same shape.

const cabin = z.enum(["basic_economy", "economy", "business"]);
const date = z.string().describe("YYYY-MM-DD");
const legs = z.array(z.object({ flight_number: z.string(), date })).min(1);
const passengers = z.array(z.object({ first_name: z.string(), last_name: z.string(), dob: date })).min(1);
const paymentId = z.string().describe("the id of a payment method in the user's profile");
const reservationId = z.string();
const bags = z.number().int().min(0);

export const bookArguments = z.object({
  user_id: z.string(),
  origin: z.string().describe("IATA code"),
  destination: z.string().describe("IATA code"),
  flight_type: z.enum(["one_way", "round_trip"]),
  cabin,
  flights: legs,
  passengers,
  payment_methods: z.array(z.object({ payment_id: paymentId, amount: z.number().min(0) })),
  total_baggages: bags,
  nonfree_baggages: bags,
  insurance: z.enum(["yes", "no"]),
});

export const cancelArguments = z.object({ reservation_id: reservationId });

export const updateFlightsArguments = z.object({
  reservation_id: reservationId,
  cabin,
  flights: legs.describe("all flights of the reservation, changed or not"),
  payment_id: paymentId,
});

export const updatePassengersArguments = z.object({ reservation_id: reservationId, passengers });

export const updateBaggagesArguments = z.object({
  reservation_id: reservationId,
  total_baggages: bags,
  nonfree_baggages: bags,
  payment_id: paymentId,
});

export const certificateArguments = z.object({ user_id: z.string(), amount: z.number().positive() });

/** A write that the model proposes, with exactly the arguments that it would run with. */
export const actionSchema = z.discriminatedUnion("tool", [
  z.object({ tool: z.literal("book_reservation"), args: bookArguments }),
  z.object({ tool: z.literal("cancel_reservation"), args: cancelArguments }),
  z.object({ tool: z.literal("update_reservation_flights"), args: updateFlightsArguments }),
  z.object({ tool: z.literal("update_reservation_passengers"), args: updatePassengersArguments }),
  z.object({ tool: z.literal("update_reservation_baggages"), args: updateBaggagesArguments }),
  z.object({ tool: z.literal("send_certificate"), args: certificateArguments }),
]);

/** A proposed write. */
export type Action = z.infer<typeof actionSchema>;
