// What a user's text, or a result, says. Rules, not intelligence.

import type { Cabin, Leg } from "./world.ts";

/** The user id in a text, such as ada_marin_1001. */
export function userIn(text: string): string | null {
  return /\b[a-z]+_[a-z]+_\d+\b/i.exec(text)?.[0].toLowerCase() ?? null;
}

/** The reservation id in a text: six capitals and digits, with one digit at least. */
export function reservationIn(text: string): string | null {
  return /\b(?=[A-Z]*\d)[A-Z\d]{6}\b/.exec(text)?.[0] ?? null;
}

/** The cabin that a text names. */
export function cabinIn(text: string): Cabin | null {
  const named = /\b(?:basic[ _]economy|economy|business)\b/i.exec(text)?.[0].toLowerCase().replace(" ", "_");
  return (named as Cabin | undefined) ?? null;
}

/** What a text asks for. */
export function wishIn(text: string): "a person" | "cancel" | "cabin" | null {
  if (/\b(?:human|person|agent|somebody)\b/i.test(text)) return "a person";
  if (/\bcancel/i.test(text)) return "cancel";
  return cabinIn(text) === null ? null : "cabin";
}

/** The payment methods in a text or result. */
export function paymentsIn(text: string): readonly string[] {
  return [...new Set(text.match(/\b(?:credit_card|gift_card|certificate)_\d+\b/g) ?? [])];
}

/** The flights in a result, each a number with the date after it. */
export function flightsIn(text: string): readonly Leg[] {
  const legs = text.matchAll(/\b([A-Z]{3}\d{3})\b\W+(?:date\W+)?(\d{4}-\d{2}-\d{2})/g);
  return [...legs].map(([, flight_number = "", date = ""]) => ({ flight_number, date }));
}
