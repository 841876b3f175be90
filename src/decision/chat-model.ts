import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { WorkflowError } from "../errors.ts";

/**
 * Refuses what only wraps models, such as `model.withFallbacks([…])`: it has neither a provider nor an address, so
 * that nobody could say where its prompts go.
 *
 * @param place whose model it is: `model`, `step triage`.
 * @throws INVALID_OPTIONS.
 */
export function requireChatModel(place: string, model: BaseChatModel): void {
  const given = model as { readonly _llmType?: unknown };
  if (typeof given._llmType === "function") return;
  const message = `${place}: ${model.constructor.name} is no chat model; pass the model itself, not what withFallbacks(), withRetry(), withConfig() or bindTools() make of it`;
  throw new WorkflowError("INVALID_OPTIONS", message, { details: { place } });
}
