import { readTools } from "./read-tools.ts";
import { writeTools } from "./write-tools.ts";

/** Every tool of the airline, by the name that the recorded runs call it. */
export const airlineTools = { ...readTools, ...writeTools };
