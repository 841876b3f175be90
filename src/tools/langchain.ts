import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { z } from "zod";
import { WorkflowError } from "../errors.ts";
import { isPlainObject } from "../internal/json.ts";
import { defineTool, type Tool, type ToolDefinition } from "../workflow/tool.ts";
import { plainResult, refuseControl } from "./langchain-result.ts";

/** Arguments whose names are known at run time only. */
export type AnyArguments = z.ZodType<Record<string, unknown>>;

/** What `defineTool` wants to know beside what the tool itself brings. */
export type Declaration = Omit<ToolDefinition<AnyArguments>, "description" | "parameters" | "run"> & {
  /** In place of the tool's own description. */
  readonly description?: string;
};

/** The parts of a LangChain tool that are used; every StructuredTool has them. */
export interface LangChainTool {
  readonly name: string;
  readonly description?: string;
  /** A zod schema, or a JSON schema. */
  readonly schema?: unknown;
  readonly responseFormat?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  invoke(input: never, config?: { signal?: AbortSignal; metadata?: Record<string, unknown> }): Promise<unknown>;
}

/**
 * Makes a tool of a LangChain tool. What it does to the world has to be declared: the tool cannot say it.
 * Its arguments are checked by us first and by LangChain again; the signal ends it at the time limit.
 *
 * @throws INVALID_WORKFLOW where its arguments cannot be described.
 *
 * @example
 * const search = fromLangChain(new TavilySearch(), { effect: "read", timeoutMs: 10_000, limit: 5 });
 */
export function fromLangChain(tool: LangChainTool, declaration: Declaration): Tool<AnyArguments> {
  const declared: Tool<AnyArguments> = defineTool<AnyArguments>({
    ...declaration,
    description: declaration.description ?? tool.description ?? "",
    parameters: parametersOf(tool),
    run: async (args, { signal, taskId, step, idempotencyKey }) => {
      // Some tools set a time limit of their own for each request; ours is the one that counts.
      const metadata = { taskId, step, idempotencyKey, timeoutMs: declared.timeoutMs };
      // Only a whole tool call gets a whole answer: content and artifact.
      const isWhole = tool.responseFormat === "content_and_artifact";
      const input = isWhole ? { type: "tool_call", id: idempotencyKey, name: tool.name, args } : args;
      return plainResult(await tool.invoke(input as never, { signal, metadata }).catch(refuseControl));
    },
  });
  return declared;
}

function parametersOf(tool: LangChainTool): AnyArguments {
  try {
    const ready = isZod(tool.schema) && isDescribable(tool.schema) ? tool.schema : converted(tool.schema);
    const described: unknown = z.toJSONSchema(ready).type;
    if (described !== "object") throw new Error("they are no object");
    return ready as AnyArguments;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `the arguments of the tool ${tool.name} cannot be described: ${why}; make it with defineTool instead`;
    const faults = [{ path: `tools.${tool.name}`, code: "INVALID_TOOL", message }];
    throw new WorkflowError("INVALID_WORKFLOW", message, { cause, details: { faults } });
  }
}

function isZod(schema: unknown): schema is z.ZodType {
  return schema instanceof z.ZodType;
}

/** One that changes values on the way would change them twice: here and in LangChain. */
function isDescribable(schema: z.ZodType): boolean {
  try {
    z.toJSONSchema(schema);
    return true;
  } catch {
    return false;
  }
}

/** From a JSON schema, or an older or foreign zod's. */
function converted(schema: unknown): z.ZodType {
  if (schema === undefined || schema === null) return z.object({});
  const plain: unknown = toJsonSchema(schema as never);
  if (!isPlainObject(plain)) throw new Error("they are given as neither a zod nor a JSON schema");
  return z.fromJSONSchema(plain);
}
