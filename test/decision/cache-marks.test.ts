import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { describe, expect, test } from "vitest";
import { providerOf, toMessage } from "../../src/decision/providers.ts";

/** A model that is asked for its kind and name only. */
class NamedModel extends FakeListChatModel {
  readonly model: string;
  private readonly kind: string;

  constructor(kind: string, model: string) {
    super({ responses: [] });
    this.kind = kind;
    this.model = model;
  }

  override _llmType(): string {
    return this.kind;
  }
}

test.each([
  ["openai", "gpt-5", "openai"],
  ["openai", "gpt-5.1-mini", "openai"],
  ["openai", "gpt-5.6", "openai-5.6"],
  ["openai", "gpt-6", "openai-5.6"],
  ["openai", "gpt-4o-mini", "openai-4o"],
  ["openai", "deepseek-chat", "deepseek"],
  ["openai", "qwen3", "unknown"],
  ["anthropic", "claude-sonnet-4-5", "anthropic"],
  ["anthropic", "claude-opus-4-6", "anthropic-4096"],
  ["google", "gemini-3-flash", "gemini"],
  ["scripted", "", "unknown"],
])("a model of kind %s named %s has the cache of %s", (kind, name, provider) => {
  expect(providerOf(new NamedModel(kind, name))).toBe(provider);
});

describe("cache breakpoints", () => {
  const text = "stable part|volatile part";
  const message = { role: "user" as const, content: text, marks: [11] };
  const anthropic = new NamedModel("anthropic", "claude-sonnet-4-5");
  const content = (sent: BaseMessage) => sent.content;

  test("are blocks for the providers that have them, and the text is the same", () => {
    const sent = toMessage(message, anthropic);
    expect(content(sent)).toEqual([
      { type: "text", text: "stable part", cache_control: { type: "ephemeral" } },
      { type: "text", text: "|volatile part" },
    ]);
    expect(sent.text).toBe(text);
    expect(content(toMessage(message, new NamedModel("openai", "gpt-5.6")))).toEqual([
      { type: "text", text: "stable part", prompt_cache_breakpoint: { mode: "explicit" } },
      { type: "text", text: "|volatile part" },
    ]);
  });

  test("are left out for all others, and where nothing is marked", () => {
    expect(content(toMessage(message, new NamedModel("openai", "gpt-5")))).toBe(text);
    expect(content(toMessage({ role: "user", content: text }, anthropic))).toBe(text);
    const said = toMessage({ role: "assistant", content: "{}", marks: [2] }, anthropic);
    expect(said).toBeInstanceOf(AIMessage);
    expect(content(said)).toBe("{}");
  });

  test("at the end of a message leave no empty block behind", () => {
    const system = toMessage({ role: "system", content: "rules", marks: [5] }, anthropic);
    expect(content(system)).toEqual([{ type: "text", text: "rules", cache_control: { type: "ephemeral" } }]);
  });
});
