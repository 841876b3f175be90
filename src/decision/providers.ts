import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import {
  AIMessage,
  HumanMessage,
  SystemMessage,
  type AIMessageChunk,
  type BaseMessage,
  type ContentBlock,
} from "@langchain/core/messages";
import { isPlainObject } from "../internal/json.ts";
import { redact } from "../internal/redact.ts";
import { CACHE_RULES, type ProviderName } from "../view/cache-rules.ts";
import type { ViewMessage } from "../view/render.ts";

/** How a model is made to answer in the decision's form. */
export type OutputMode = "native" | "tool" | "json";

/** Whose prompt cache a model has, by its class and name; `unknown` where neither tells. */
export function providerOf(model: BaseChatModel): ProviderName {
  const { promptCache } = model as { readonly promptCache?: ProviderName };
  if (promptCache !== undefined && Object.hasOwn(CACHE_RULES, promptCache)) return promptCache;
  const name = nameOf(model);
  switch (model._llmType()) {
    case "anthropic":
      return /opus-4-[5-9]|haiku-4-[5-9]/.test(name) ? "anthropic-4096" : "anthropic";
    case "google":
    case "googlegenai":
    case "googlegenerativeai":
    case "googlevertexai":
      return "gemini";
    case "deepseek":
      return "deepseek";
    case "openai":
      return openaiRule(name);
    default:
      return "unknown";
  }
}

/** Many servers speak OpenAI's protocol, so only the model's name tells whose it is. */
function openaiRule(name: string): ProviderName {
  if (name.startsWith("deepseek")) return "deepseek";
  if (name.startsWith("gemini")) return "gemini";
  if (name.startsWith("gpt-4")) return "openai-4o";
  const version = /^gpt-(\d+(?:\.\d+)?)/.exec(name)?.[1];
  if (version === undefined) return "unknown";
  return Number(version) >= 5.6 ? "openai-5.6" : "openai";
}

function nameOf(model: BaseChatModel): string {
  const named = model as { readonly model?: unknown; readonly modelName?: unknown };
  const name = named.model ?? named.modelName;
  return typeof name === "string" ? name.toLowerCase() : "";
}

/**
 * A message of a view for LangChain. For a model whose provider caches up to marked places only, the
 * content is cut into blocks at its marks.
 */
export function toMessage(message: ViewMessage, model: BaseChatModel): BaseMessage {
  const { mark } = CACHE_RULES[providerOf(model)];
  const content = mark && message.role !== "assistant" ? markedBlocks(message, mark) : message.content;
  if (message.role === "system") return new SystemMessage({ content });
  return message.role === "user" ? new HumanMessage({ content }) : new AIMessage({ content });
}

const MARKS = {
  cache_control: { cache_control: { type: "ephemeral" } },
  prompt_cache_breakpoint: { prompt_cache_breakpoint: { mode: "explicit" } },
} as const;

function markedBlocks({ content, marks = [] }: ViewMessage, mark: keyof typeof MARKS): ContentBlock.Text[] | string {
  if (marks.length === 0) return content;
  const rest = content.slice(marks.at(-1) ?? 0);
  const blocks = marks.map((end, index) => ({
    type: "text" as const,
    text: content.slice(marks[index - 1] ?? 0, end),
    ...MARKS[mark],
  }));
  return rest === "" ? blocks : [...blocks, { type: "text", text: rest }];
}

// Servers that speak the OpenAI protocol but reject response_format, found out at the first call.
const withoutNative = new WeakSet<BaseChatModel>();

/** Remembers that a model's server has no native structured output. */
export function rememberWithoutNative(model: BaseChatModel): void {
  withoutNative.add(model);
}

/**
 * The output mode of a model: native structured output for OpenAI's protocol, tools where it can
 * bind them, else plain JSON. (Without streaming, ChatOpenAI parses native output itself and throws
 * away the text and usage of a malformed answer; so that is not used.)
 */
export function outputMode(model: BaseChatModel): OutputMode {
  const native = model._llmType() === "openai" && !model.disableStreaming && !withoutNative.has(model);
  if (native) return "native";
  return typeof model.bindTools === "function" ? "tool" : "json";
}

/** ChatOpenAI drops the field in which a model says that it refuses, unless it keeps the raw response. */
export function keepRefusals(model: unknown): void {
  const completions: unknown = (model as { completions?: unknown } | null)?.completions;
  if (typeof completions === "object" && completions !== null)
    Object.assign(completions, { __includeRawResponse: true });
}

/** What a model said in place of an answer, where its provider marks it so. */
export function refusalIn(message: AIMessageChunk): string {
  const { refusal, __raw_response: raw } = message.additional_kwargs;
  if (typeof refusal === "string") return refusal;
  const choice: unknown = isPlainObject(raw) && Array.isArray(raw.choices) ? raw.choices[0] : undefined;
  const part: unknown = isPlainObject(choice) ? (choice.delta ?? choice.message) : undefined;
  return isPlainObject(part) && typeof part.refusal === "string" ? part.refusal : "";
}

const MIN_SECRET = 8;

/** Takes keys out of a text: what looks like one, and the model's own, whatever it looks like. */
export function redactFor(model: BaseChatModel, text: string): string {
  const key: unknown = "apiKey" in model ? model.apiKey : undefined;
  const known = typeof key === "string" && key.length >= MIN_SECRET ? text.replaceAll(key, "[redacted]") : text;
  return redact(known);
}
