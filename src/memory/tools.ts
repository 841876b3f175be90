import { z } from "zod";
import { ToolError } from "../tools/tool-error.ts";
import { MEMORY_TYPES } from "../workflow/memorable.ts";
import { defineTool, type ToolContext } from "../workflow/tool.ts";
import type { Memories } from "./memories.ts";
import type { Memory } from "./memory.ts";
import type { MemoryItem } from "./value.ts";

const MAX_GIVEN = 100_000;
const DAY_MS = 24 * 60 * 60 * 1000;

const type = z.enum(MEMORY_TYPES);

/**
 * The tools with which a model remembers, recalls and forgets across tasks. Whose memory it is comes from
 * `memories`; no argument can name another.
 *
 * @example
 * defineWorkflow({ tools: { ...memoryTools(memories) }, steps: { talking: { tools: ["remember", "recall"], … } } })
 */
export function memoryTools(memories: Memories) {
  return {
    remember: defineTool({
      description:
        "Keeps something for later tasks: a preference, a fact, a task's result, or a snapshot of work that is not done. One statement that makes sense on its own. What is remembered already is kept once.",
      parameters: z.object({
        type,
        text: z.string().trim().min(1).max(MAX_GIVEN).describe("long texts are condensed"),
        priority: z
          .number()
          .int()
          .min(0)
          .max(5)
          .optional()
          .describe("5 lasting and important, 1 passing: gone after a day; by type unless given"),
        days: z.number().positive().max(36_500).optional().describe("after how many days it is forgotten"),
      }),
      effect: "write",
      readsMemories: true,
      // Writing the same twice writes one memory.
      idempotent: true,
      async run({ days, ...memory }, context) {
        const { taskId, step } = context;
        const ends = days === undefined ? {} : { timeToLiveMs: days * DAY_MS };
        const written = await memoryOf(memories, context).remember({ ...memory, ...ends, taskId, step });
        const { isNew, isCondensed } = written;
        return {
          written: true,
          ...told(written.memory),
          ...(isNew ? {} : { note: "it was remembered already; its time and priority are new" }),
          ...(isCondensed ? { condensed: true } : {}),
        };
      },
    }),
    recall: defineTool({
      description:
        "Looks for what was remembered in earlier tasks, by words that the memory would hold. The best match comes first.",
      parameters: z.object({
        query: z.string().trim().min(1).max(500),
        type: type.optional(),
        limit: z.number().int().min(1).max(20).optional().describe("5 unless given"),
      }),
      effect: "read",
      readsMemories: true,
      async run({ query, type, limit }, context) {
        const found = await memoryOf(memories, context).recall({
          query,
          ...(type === undefined ? {} : { type }),
          ...(limit === undefined ? {} : { limit }),
        });
        if (found.length === 0) return { memories: [], note: "nothing fits; try other words, or fewer" };
        return { memories: found.map((memory) => ({ ...told(memory), match: Math.round(memory.match * 100) / 100 })) };
      },
    }),
    forget: defineTool({
      description: "Deletes one memory that is wrong or no longer wanted.",
      parameters: z.object({ id: z.string().min(1).max(100).describe("as recall or the memory block names it") }),
      effect: "write",
      idempotent: true,
      async run({ id }, context) {
        if (await memoryOf(memories, context).forget(id)) return { forgotten: true, id };
        return { forgotten: false, id, note: "there is no such memory" };
      },
    }),
  };
}

function memoryOf(memories: Memories, context: ToolContext): Memory {
  const memory = memories.of(context);
  if (memory) return memory;
  throw new ToolError("it is not known whose memory this is", {
    type: "NO_OWNER",
    hint: "go on without memory: the task does not say who its user is",
  });
}

function told({ id, type, text, priority, updatedAt, expiresAt }: MemoryItem) {
  return {
    id,
    type,
    text,
    priority,
    at: new Date(updatedAt).toISOString(),
    ...(expiresAt === undefined ? {} : { until: new Date(expiresAt).toISOString() }),
  };
}
