import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { airlineTools } from "../../graphs/airline/tools.ts";
import { airlineFolder, type World } from "../../graphs/airline/world.ts";
import type { AnyTool, Tools } from "../../src/workflow/tool.ts";
import { dataFolder, type RecordedMessage } from "./trajectories.ts";

/** One recorded run; its id is "task.trial", its reward 1 where it ended as it should have. */
export interface AirlineRun {
  readonly id: string;
  readonly reward: 0 | 1;
  readonly messages: readonly RecordedMessage[];
}

/** One of the 50 tasks with its right actions. */
export interface AirlineTask {
  readonly id: number;
  readonly user_id: string;
  readonly actions: readonly { readonly name: string; readonly kwargs: Readonly<Record<string, unknown>> }[];
}

/** Arguments of a booking that the small world accepts. */
export const adasBooking = {
  user_id: "ada_marin_1001",
  origin: "LAX",
  destination: "JFK",
  flight_type: "one_way",
  cabin: "economy",
  flights: [{ flight_number: "SKY101", date: "2024-05-20" }],
  passengers: [{ first_name: "Ada", last_name: "Marin", dob: "1985-02-11" }],
  payment_methods: [{ payment_id: "credit_card_1000001", amount: 180 }],
  total_baggages: 3,
  nonfree_baggages: 0,
  insurance: "no",
};

const RUNS = join(dataFolder, "trajectories", "tau-airline-gpt4o.jsonl");

/** The recorded world's folder. */
export const recordedWorld = airlineFolder(dataFolder);
const TASKS = join(recordedWorld, "tasks.json");

/** Why tests on the recorded airline must be skipped, or null where everything is there. */
export function missingAirline(): string | null {
  const missing = [RUNS, TASKS].filter((path) => !existsSync(path));
  if (missing.length === 0) return null;
  return `skipped: ${missing.join(", ")} not found; set STATECARD_DATA to the folder of recorded data`;
}

export function readRuns(): readonly AirlineRun[] {
  const lines = readFileSync(RUNS, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as AirlineRun);
}

export function readTasks(): readonly AirlineTask[] {
  return JSON.parse(readFileSync(TASKS, "utf8")) as AirlineTask[];
}

/** Runs a tool's body as the runtime would, on a world; an exception is told as the recordings tell it. */
export function callDirectly(world: World, name: string, args: Readonly<Record<string, unknown>>): unknown {
  const tool: AnyTool | undefined = (airlineTools as Tools)[name];
  const parsed = tool?.parameters.parse(args);
  try {
    const value = tool?.run(parsed as never, { clients: { world } } as never);
    return typeof value === "string" ? value : (JSON.parse(JSON.stringify(value)) as unknown);
  } catch (error) {
    return String(error);
  }
}

const CONSENT = /^\W*(?:yes|yeah|yep|oui|(?:please )?(?:proceed|go ahead)|i confirm|confirming)\b/i;
const DISSENT = /^\W*(?:no|nope|actually|wait|stop|don[’']?t|do not)\b/i;
const CONDITION = /\b(?:but|not|never|instead|however|unless|if)\b|n[’']t\b|\?$/i;

/**
 * Whether a turn of the user is an explicit yes: a sentence of it begins as one, without a condition or a
 * question in it. It looks at nothing but the turn.
 */
export function consentOf(turn: string): "yes" | "no" | "unclear" {
  const sentences = turn.match(/[^.!?\n]+[.!?]?/g) ?? [];
  if (sentences.some((sentence) => DISSENT.test(sentence))) return "no";
  const agrees = sentences.some((sentence) => CONSENT.test(sentence) && !CONDITION.test(sentence.trim()));
  return agrees ? "yes" : "unclear";
}
