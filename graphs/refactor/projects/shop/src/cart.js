import { readFileSync } from "node:fs";
import { rateOf, taxes } from "./taxes.js";

const CURRENCY = "EUR";

/** The sum of a cart's items, without taxes. */
export function sumOf(items) {
  return items.reduce((sum, { price, count }) => sum + price * count, 0);
}

/**
 * A price for people: `formatPrice(12.5, "books")` is "13.13 EUR".
 * What stands in braces, such as } or ${price}, is text.
 */
export function formatPrice(price, kind = "other") {
  const whole = price * (1 + rateOf(kind));
  return `${whole.toFixed(2)} ${currencyOf(`-${kind}`)}`;
}

function currencyOf(kind) {
  return kind === "-points" ? "pts" : CURRENCY;
}

/** What a receipt says, a line each. */
export function receipt(items) {
  const lines = items.map(({ name, price, kind }) => `${name}: ${formatPrice(price, kind)}`);
  return [...lines, `taxes known: ${Object.keys(taxes).length}`].join("\n");
}

export function load(file) {
  return JSON.parse(readFileSync(file, "utf8"));
}
