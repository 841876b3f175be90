import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, HumanMessage, type AIMessageChunkFields } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import { expect, test } from "vitest";
import { askModel, type ChatRequest } from "../../src/decision/chat.ts";
import { systemClock } from "../../src/internal/clock.ts";

/** Streams the given pieces, as an answer by tool. */
class PiecesModel extends BaseChatModel {
  private readonly pieces: readonly AIMessageChunkFields[];

  constructor(pieces: readonly AIMessageChunkFields[]) {
    super({ maxRetries: 0 });
    this.pieces = pieces;
  }

  override _llmType(): string {
    return "pieces";
  }

  override bindTools(): this {
    return this;
  }

  override _generate(): Promise<ChatResult> {
    throw new Error("it streams");
  }

  override async *_streamResponseChunks(): AsyncGenerator<ChatGenerationChunk> {
    await Promise.resolve();
    for (const fields of this.pieces) yield new ChatGenerationChunk({ text: "", message: new AIMessageChunk(fields) });
  }
}

function ask(pieces: readonly AIMessageChunkFields[], options: Partial<ChatRequest> = {}) {
  return askModel({
    model: new PiecesModel(pieces),
    messages: [new HumanMessage("go")],
    schema: {},
    strict: false,
    timeoutMs: 5000,
    clock: systemClock,
    config: {},
    ...options,
  });
}

const usage = (input_tokens: number, output_tokens: number, cache_read?: number) => ({
  input_tokens,
  output_tokens,
  total_tokens: input_tokens + output_tokens,
  ...(cache_read === undefined ? {} : { input_token_details: { cache_read } }),
});
const call = (args: string, index: number) => ({
  content: "",
  tool_call_chunks: [{ type: "tool_call_chunk" as const, name: "decide", args, index }],
});

// What ChatAnthropic streams: the prompt is counted in the first piece, the answer in the last; blocks are counted,
// the text before the call included; why it ended stands beside the metadata.
const PIECES: readonly AIMessageChunkFields[] = [
  { content: "", usage_metadata: usage(1200, 1, 1000) },
  { content: "I decide." },
  call('{"next":', 1),
  call('"pay"}', 1),
  call('{"next":"no"}', 2),
  { content: "", usage_metadata: usage(0, 40), additional_kwargs: { stop_reason: "max_tokens" } },
];

test.each([
  ["in one go", {}],
  ["with its reply streamed", { onReply: () => {} }],
])("an answer in pieces is counted and read as a whole, %s", async (_how, options) => {
  const answer = await ask(PIECES, options);
  expect(answer).toMatchObject({
    text: '{"next":"pay"}',
    usage: { calls: 1, inputTokens: 1200, cachedTokens: 1000, outputTokens: 41 },
    cutOff: true,
  });
});

test.each([Infinity, 2 ** 31])("a time limit of %d ms is none that ends at once", async (timeoutMs) => {
  expect(await ask(PIECES, { timeoutMs })).toMatchObject({ text: '{"next":"pay"}' });
  const slow = new PiecesModel([]);
  slow._streamResponseChunks = async function* () {
    await new Promise((done) => setTimeout(done, 50));
    yield new ChatGenerationChunk({ text: "", message: new AIMessageChunk({ content: "late" }) });
  };
  expect(await ask([], { model: slow, timeoutMs })).toMatchObject({ text: "late" });
});
