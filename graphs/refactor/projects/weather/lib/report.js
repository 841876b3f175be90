import { toCelsius } from "./units/temperature.js";

/** Mean of the readings, in whole degrees Celsius. */
export const meanOf = (readings) =>
  Math.round(toCelsius(readings.reduce((sum, each) => sum + each, 0) / readings.length));

// One sign for each kind of day.
export const signOf = (readings, { cold = 5, hot = 25 } = {}) => {
  const mean = meanOf(readings);
  if (/^-\d+$/.test(String(mean))) return "*";
  return mean < cold ? "~" : mean > hot ? "!" : "-";
};

export function report(days) {
  return days.map((day) => `${signOf(day)} ${meanOf(day)}`).join("\n");
}
