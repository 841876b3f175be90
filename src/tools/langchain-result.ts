import { isPlainObject } from "../internal/json.ts";
import { ToolError } from "./tool-error.ts";

const BLOCKS = /^(?:text|image|image_url|audio|video|file|resource|resource_link|input_\w+|text-plain|non_standard)$/;

/**
 * What a LangChain tool returns, as plain JSON: a message's content, texts joined, structured content as it
 * is. Pictures and the like, which a model's prompt does not show here, become a note.
 *
 * @throws ToolError for an error message, and for a command: a tool moves nothing.
 */
export function plainResult(output: unknown): unknown {
  if (isCommand(output)) {
    throw new ToolError("it returned a LangGraph command, which a tool cannot carry out", {
      type: "UNSUPPORTED_RESULT",
    });
  }
  if (!isMessage(output)) return isBlocks(output) ? plainContent(output) : output;
  const content = isBlocks(output.content) ? plainContent(output.content) : output.content;
  if (output.status === "error") throw new ToolError(asText(content), { type: "ToolException" });
  return structured(output.artifact) ?? content;
}

/** Passes an error on; what LangGraph throws to pause or to move elsewhere is not carried out. @throws */
export function refuseControl(error: unknown): never {
  if (typeof error !== "object" || error === null || !("is_bubble_up" in error)) throw error;
  const message = "it tried to pause or move the task, which a tool cannot do; declare approve to ask a person";
  throw new ToolError(message, { type: "UNSUPPORTED_RESULT", cause: error });
}

interface Message {
  readonly content: unknown;
  readonly artifact?: unknown;
  readonly status?: unknown;
}

interface Block {
  readonly type: string;
  readonly [part: string]: unknown;
}

function isMessage(value: unknown): value is Message {
  return typeof value === "object" && value !== null && "type" in value && value.type === "tool" && "content" in value;
}

/** Known by the mark that LangGraph's own checks go by. */
function isCommand(value: unknown): boolean {
  return typeof value === "object" && value !== null && "lg_name" in value && value.lg_name === "Command";
}

function isBlocks(value: unknown): value is readonly Block[] {
  if (!Array.isArray(value) || value.length === 0) return false;
  return value.every((item) => isPlainObject(item) && typeof item.type === "string" && BLOCKS.test(item.type));
}

/** The JSON that an MCP server gives beside its text. */
function structured(artifact: unknown): unknown {
  if (!Array.isArray(artifact)) return null;
  const found: unknown = artifact.find((item) => isPlainObject(item) && item.type === "mcp_structured_content");
  return isPlainObject(found) ? found.data : null;
}

function plainContent(blocks: readonly Block[]): string {
  return blocks.map((block) => (typeof block.text === "string" ? block.text : note(block))).join("\n");
}

function note(block: Block): string {
  const kind = block.type.replace("_url", "");
  const url = isPlainObject(block.image_url) ? block.image_url.url : (block.url ?? block.image_url);
  const inline = typeof url === "string" ? /^data:([^;,]*)/.exec(url)?.[1] : undefined;
  const format = block.mime_type ?? block.mimeType ?? inline;
  const place = typeof url === "string" && inline === undefined ? ` ${url}` : "";
  return `[${kind}${typeof format === "string" && format ? ` (${format})` : ""}${place}, not shown]`;
}

function asText(content: unknown): string {
  return typeof content === "string" ? content : JSON.stringify(content);
}
