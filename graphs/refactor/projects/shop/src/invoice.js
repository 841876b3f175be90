import { formatPrice as price, sumOf } from "./cart.js";

// formatPrice is told apart from what only looks like it: "formatPrice" in a text stays.
export function invoice(items) {
  return `Total (formatPrice): ${price(sumOf(items), "points")}`;
}
