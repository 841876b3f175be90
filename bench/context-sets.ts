import { existsSync, readFileSync } from "node:fs";
import { dataFolder, type RecordedMessage } from "../test/support/trajectories.ts";

export type { RecordedCall } from "../test/support/trajectories.ts";

export interface Message extends RecordedMessage {
  /** The true dialogue state after a user's message, in sgd-dev. */
  readonly state?: readonly { readonly slot_values: Readonly<Record<string, readonly string[]>> }[];
}

export interface Recorded {
  readonly id: string;
  readonly messages: readonly Message[];
}

/** A tool as the recorded agent was given it. */
export interface GivenTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** Why there is nothing to measure, or null. */
export function missingData(): string | null {
  const folder = `${dataFolder}/trajectories`;
  if (existsSync(folder)) return null;
  return `${folder} is missing: set STATECARD_DATA to the folder of recorded data`;
}

/** All conversations of a set, by id. */
export function readSet(file: string): readonly Recorded[] {
  return readFileSync(`${dataFolder}/trajectories/${file}.jsonl`, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Recorded)
    .toSorted((a, b) => a.id.localeCompare(b.id, "en", { numeric: true }));
}

/** The schemas of the tools of a tau set. */
export function readTools(file: string): readonly GivenTool[] {
  const tools = JSON.parse(readFileSync(`${dataFolder}/trajectories/${file}.json`, "utf8")) as readonly {
    readonly function: GivenTool;
  }[];
  return tools.map((tool) => tool.function);
}

/** Tools whose schemas are not recorded: what the recorded calls gave them, as texts. */
export function toolsOf(conversations: readonly Recorded[]): readonly GivenTool[] {
  const parameters = new Map<string, Set<string>>();
  for (const { messages } of conversations) {
    for (const { name, args } of messages.flatMap(({ toolCalls = [] }) => toolCalls)) {
      const known = parameters.get(name) ?? new Set();
      for (const key of Object.keys(args)) known.add(key);
      parameters.set(name, known);
    }
  }
  return [...parameters].map(([name, keys]) => ({
    name,
    description: name,
    parameters: {
      type: "object",
      properties: Object.fromEntries([...keys].map((key) => [key, { type: "string" }])),
    },
  }));
}

/** Conversations are told apart by a number, so that a rule can be tuned on some and reported on others. */
export function isHeldOut(index: number): boolean {
  return index % 2 === 1;
}
