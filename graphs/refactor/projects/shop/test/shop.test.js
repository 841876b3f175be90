import assert from "node:assert/strict";
import { test } from "node:test";
import { formatPrice, sumOf } from "../src/cart.js";
import { invoice, receipt, formatPrice as fromIndex } from "../src/index.js";
import { formatPrice as label } from "../src/labels.js";

const items = [{ name: "atlas", price: 10, count: 2, kind: "books" }];

test("prices", () => {
  assert.equal(formatPrice(10, "books"), "10.50 EUR");
  assert.equal(fromIndex, formatPrice);
  assert.equal(label(1), "1!");
});

test("texts", () => {
  assert.equal(sumOf(items), 20);
  assert.equal(invoice(items), "Total (formatPrice): 20.00 pts");
  assert.equal(receipt(items), "atlas: 10.50 EUR\ntaxes known: 2");
});
