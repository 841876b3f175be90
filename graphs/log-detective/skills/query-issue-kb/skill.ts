import { z } from "zod";
import { failure, readParameters, type SkillContext, type SkillResult } from "../../protocol.ts";
import { find, readKnowledge, type Entry, type Knowledge } from "./knowledge.ts";

/** What it takes. */
const schema = z.object({
  query: z.string().min(2).max(500),
  limit: z.number().int().min(1).max(8).default(4),
});

/** What it gives. */
export interface Issues {
  readonly query: string;
  /** How many entries were looked through. */
  readonly of: number;
  readonly entries: readonly Entry[];
  /** What is odd about the entries that are given: duplicates, contradictions. */
  readonly notes: readonly string[];
}

/** Finds known issues that a question or the text of log lines is about. */
export function execute(given: unknown, { clients }: SkillContext): SkillResult<Issues> {
  const read = readParameters(schema, given);
  if (!read.ok) return read.failed;
  const { query, limit } = read.parameters;
  const { knowledgeBase = new URL("./issues.json", import.meta.url) } = clients;
  let knowledge: Knowledge;
  try {
    if (!(typeof knowledgeBase === "string" || knowledgeBase instanceof URL)) throw new TypeError("it is no path");
    knowledge = readKnowledge(knowledgeBase);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    return failure("NO_KNOWLEDGE_BASE", `the knowledge base cannot be read: ${said}`, "answer from the log alone");
  }
  const entries = find(knowledge.entries, query, limit);
  const notes = knowledge.problems.filter((problem) =>
    entries.some(({ id }) => new RegExp(`\\b${id}\\b`).test(problem)),
  );
  return {
    status: "success",
    output: { query, of: knowledge.entries.length, entries, notes },
    metadata: { found: entries.length },
  };
}
