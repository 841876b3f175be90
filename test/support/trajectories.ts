import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** A call as a recorded assistant made it. */
export interface RecordedCall {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** One message of a recorded conversation. */
export interface RecordedMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  readonly toolCalls?: readonly RecordedCall[];
  readonly toolCallId?: string;
}

/** One recorded conversation between a user and an agent. */
export interface Conversation {
  /** File and id, so that it is unique over all files. */
  readonly name: string;
  readonly id: string;
  readonly messages: readonly RecordedMessage[];
  /** What the user said, turn by turn. */
  readonly userTurns: readonly string[];
}

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));

/** The folder of recorded public data: STATECARD_DATA, else `shared/data` beside the project. */
export const dataFolder = resolve(PROJECT, process.env.STATECARD_DATA || "../shared/data");

/** Why tests on these files must be skipped, or null where all of them are there. */
export function missingTrajectories(files: readonly string[]): string | null {
  const missing = files.map(pathOf).filter((path) => !existsSync(path));
  if (missing.length === 0) return null;
  return `skipped: ${missing.join(", ")} not found; set STATECARD_DATA to the folder of recorded data`;
}

/** The conversations of one file, ordered by id, numbers in ids by value. */
export function readConversations(file: string): readonly Conversation[] {
  return readFileSync(pathOf(file), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => readConversation(file, line))
    .toSorted((a, b) => a.id.localeCompare(b.id, "en", { numeric: true }));
}

function pathOf(file: string): string {
  return join(dataFolder, "trajectories", `${file}.jsonl`);
}

function readConversation(file: string, line: string): Conversation {
  const { id, messages } = JSON.parse(line) as { id: string; messages: readonly RecordedMessage[] };
  const userTurns = messages.filter((message) => message.role === "user").map((message) => message.content);
  return { name: `${file}/${id}`, id, messages, userTurns };
}
