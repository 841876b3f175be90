import * as weather from "./report.js";

export function print(days, write) {
  for (const day of days) write(weather.signOf(day));
  write(weather.report(days));
}
