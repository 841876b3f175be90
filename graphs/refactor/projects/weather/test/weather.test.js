import assert from "node:assert/strict";
import { test } from "node:test";
import { alarm } from "../lib/alarm.js";
import { print } from "../lib/print.js";

const days = [
  [90, 95],
  [10, 0],
  [60, 60],
];

test("what is printed", () => {
  const lines = [];
  print(days, (line) => lines.push(line));
  assert.deepEqual(lines, ["!", "*", "-", "! 34\n* -15\n- 16"]);
});

test("an alarm", () => {
  assert.deepEqual(days.map(alarm), ["alarm at 34", null, null]);
});
