import { meanOf, signOf } from "./report.js";

export function alarm(day) {
  return signOf(day, { hot: 20 }) === "!" ? `alarm at ${meanOf(day)}` : null;
}
