import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { AIMessageChunk } from "@langchain/core/messages";
import { isPlainObject } from "../internal/json.ts";
import { redact } from "../internal/redact.ts";

/** How a model is made to answer in the decision's form. */
export type OutputMode = "native" | "tool" | "json";

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
