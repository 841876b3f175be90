import { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, mergeUsageMetadata, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import type { RunnableConfig } from "@langchain/core/runnables";
import { isWorkflowError, WorkflowError } from "../errors.ts";
import { MAX_TIMER_MS, type Clock } from "../internal/clock.ts";
import { isPlainObject, shorten } from "../internal/json.ts";
import { StreamRedactor } from "../internal/redact.ts";
import type { Usage } from "../state/execution.ts";
import { keepRefusals, outputMode, redactFor, refusalIn, rememberWithoutNative, type OutputMode } from "./providers.ts";
import { ReplyScanner } from "./reply-scanner.ts";
import type { JsonSchema } from "./schema.ts";

/** One question to a model. */
export interface ChatRequest {
  readonly model: BaseChatModel;
  readonly messages: readonly BaseMessage[];
  readonly schema: JsonSchema;
  readonly strict: boolean;
  /** Absent: the best that the model is known to have. */
  readonly mode?: OutputMode;
  /** The longest that one answer may take, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly config: RunnableConfig;
  /** Gets the text of a `reply` while it is written. Its presence makes the answer stream. */
  readonly onReply?: (delta: string) => void;
  /** True where nothing of a reply may leave before the whole answer was judged. */
  readonly holdReply?: boolean;
}

/** One answer, right or wrong: the raw text and the usage are kept in any case. */
export interface ChatAnswer {
  readonly text: string;
  readonly usage: Usage;
  readonly latencyMs: number;
  readonly firstTokenMs: number;
  /** What the model said instead of answering, where the provider marks it as a refusal. */
  readonly refusal: string | null;
  /** True where the provider says that it stopped at the output limit. */
  readonly cutOff: boolean;
}

const TOOL_NAME = "decide";

/**
 * Asks a chat model once and gives back its raw answer.
 *
 * @throws MODEL_TIMEOUT, or MODEL_FAILED with `details.status` where the provider gave one. An abort
 * by the caller is passed on as it is.
 */
export async function askModel(request: ChatRequest): Promise<ChatAnswer> {
  const mode = request.mode ?? outputMode(request.model);
  try {
    return await askOnce(request, mode);
  } catch (error) {
    if (request.mode === undefined && mode === "native" && rejectsResponseFormat(error)) {
      rememberWithoutNative(request.model);
      return askModel(request);
    }
    throw error;
  }
}

function rejectsResponseFormat(error: unknown): boolean {
  return (
    isWorkflowError(error, "MODEL_FAILED") &&
    (error.details.status === 400 || error.details.status === 422) &&
    /response_format|json_schema|structured output/i.test(error.message)
  );
}

async function askOnce(request: ChatRequest, mode: OutputMode): Promise<ChatAnswer> {
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), Math.min(request.timeoutMs, MAX_TIMER_MS));
  const outer = request.config.signal;
  const signal = outer ? AbortSignal.any([outer, timeout.signal]) : timeout.signal;
  const reader = new AnswerReader(request.clock);
  try {
    await abortable(read(request, mode, signal, reader), signal);
    return reader.answer();
  } catch (error) {
    if (outer?.aborted) throw error;
    if (timeout.signal.aborted) {
      const message = `the model did not finish its answer within ${request.timeoutMs} ms; the task stays where it is: resume it to try again, or raise modelTimeoutMs`;
      throw new WorkflowError("MODEL_TIMEOUT", message, { cause: error, retryable: true });
    }
    throw modelFailure(request.model, error);
  } finally {
    clearTimeout(timer);
  }
}

async function read(request: ChatRequest, mode: OutputMode, signal: AbortSignal, reader: AnswerReader): Promise<void> {
  const { model, messages, config, onReply } = request;
  const options = { signal, ...modeOptions(request, mode) };
  const runnable =
    mode === "tool" && model.bindTools ? model.bindTools([toolOf(request)], { tool_choice: TOOL_NAME }) : model;
  keepRefusals(model);
  keepRefusals(runnable);
  if (onReply) {
    const inner = async function* () {
      // The inner model runs without callbacks, so that the JSON never reaches a stream.
      const stream = await runnable.stream([...messages], { ...options, callbacks: [], tags: ["nostream"] });
      for await (const chunk of stream) {
        reader.push(chunk);
        yield chunk;
      }
    };
    const front = new ReplyModel(
      model.getName(),
      inner,
      () => reader.usageMetadata,
      request.holdReply ? null : onReply,
    );
    await front.invoke([...messages], {
      signal,
      callbacks: config.callbacks,
      metadata: config.metadata,
      tags: config.tags,
    });
  } else if (streams(model)) {
    const stream = await runnable.stream([...messages], { ...options, callbacks: config.callbacks });
    for await (const chunk of stream) reader.push(chunk);
  } else {
    reader.push(await runnable.invoke([...messages], { ...options, callbacks: config.callbacks }));
  }
}

function streams(model: BaseChatModel): boolean {
  return model._streamResponseChunks !== BaseChatModel.prototype._streamResponseChunks;
}

/** Waits for the work, but not longer than the signal: a model that ignores its signal cannot hold a task. */
async function abortable(work: Promise<void>, signal: AbortSignal): Promise<void> {
  let stop = () => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(signal.reason as Error);
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
    work.catch(() => {});
  }
}

function modeOptions(request: ChatRequest, mode: OutputMode): Record<string, unknown> {
  if (mode !== "native") return {};
  const json_schema = { name: TOOL_NAME, schema: request.schema, strict: request.strict };
  return { response_format: { type: "json_schema", json_schema } };
}

function toolOf(request: ChatRequest) {
  return {
    type: "function" as const,
    function: { name: TOOL_NAME, description: "Give your decision.", parameters: request.schema },
  };
}

function modelFailure(model: BaseChatModel, error: unknown): WorkflowError {
  const status = isPlainObject(error) || error instanceof Error ? (error as { status?: unknown }).status : undefined;
  const known = typeof status === "number" ? status : undefined;
  const said = shorten(redactFor(model, error instanceof Error ? error.message : String(error)), 300);
  const message = `the model call failed${known ? ` (HTTP ${known})` : ""}: ${said}; the task stays where it is: resume it to try again`;
  const retryable = known === undefined || known === 408 || known === 429 || known >= 500;
  return new WorkflowError("MODEL_FAILED", message, {
    cause: error,
    retryable,
    details: known ? { status: known } : {},
  });
}

/** Why an answer ended; Anthropic's pieces say it beside their metadata. */
interface Finish {
  readonly finish_reason?: unknown;
  readonly stop_reason?: unknown;
}

/** Collects what an answer is made of, whether it comes whole or in pieces. */
class AnswerReader {
  private readonly clock: Clock;
  private readonly start: number;
  private first: number | null = null;
  private readonly firstCall = new FirstCall();
  private content = "";
  private toolArguments = "";
  private refusal = "";
  private finish = "";
  usageMetadata: AIMessageChunk["usage_metadata"];

  constructor(clock: Clock) {
    this.clock = clock;
    this.start = clock.now();
  }

  push(message: BaseMessage): void {
    const chunk = message as AIMessageChunk;
    const text = contentText(chunk.content);
    const pieces = this.firstCall.textIn(chunk);
    this.content += text;
    this.toolArguments += pieces;
    if (text || pieces) this.first ??= this.clock.now();
    // Each piece tells what it adds: some providers count what was read in the first and what was written in the last.
    if (chunk.usage_metadata) {
      const before = this.usageMetadata;
      this.usageMetadata = before ? mergeUsageMetadata(before, chunk.usage_metadata) : chunk.usage_metadata;
    }
    this.refusal += refusalIn(chunk);
    const said = { ...chunk.additional_kwargs, ...chunk.response_metadata } as Finish;
    const finish = said.finish_reason ?? said.stop_reason;
    if (typeof finish === "string") this.finish = finish;
  }

  answer(): ChatAnswer {
    const end = this.clock.now();
    const usage = this.usageMetadata;
    return {
      text: this.toolArguments || this.content,
      usage: {
        calls: 1,
        inputTokens: usage?.input_tokens ?? 0,
        cachedTokens: usage?.input_token_details?.cache_read ?? 0,
        outputTokens: usage?.output_tokens ?? 0,
      },
      latencyMs: end - this.start,
      firstTokenMs: (this.first ?? end) - this.start,
      refusal:
        this.refusal || (this.finish === "content_filter" ? "the provider's content filter stopped the answer" : null),
      cutOff: this.finish === "length" || this.finish === "max_tokens",
    };
  }
}

function contentText(content: AIMessageChunk["content"]): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" && typeof part.text === "string" ? part.text : "")).join("");
}

/** Only the first tool call counts: a decision is one object. */
class FirstCall {
  /** Some providers count calls, some all blocks of an answer, the text before the call included. */
  private index: number | string | undefined;

  textIn(message: AIMessageChunk): string {
    const pieces = message.tool_call_chunks ?? [];
    if (pieces.length > 0) {
      this.index ??= pieces[0]?.index ?? 0;
      return pieces.map((call) => ((call.index ?? this.index) === this.index ? (call.args ?? "") : "")).join("");
    }
    const call = message.tool_calls?.[0];
    if (call) return JSON.stringify(call.args);
    return message.invalid_tool_calls?.[0]?.args ?? "";
  }
}

/**
 * A chat model in front of the real one whose tokens are the reply's text only: every LangGraph
 * client that shows a model's tokens shows the reply, and the JSON around it never leaves.
 */
class ReplyModel extends BaseChatModel {
  private readonly label: string;
  private readonly inner: () => AsyncGenerator<AIMessageChunk>;
  private readonly usage: () => AIMessageChunk["usage_metadata"];
  private readonly onReply: ((delta: string) => void) | null;

  constructor(
    label: string,
    inner: () => AsyncGenerator<AIMessageChunk>,
    usage: () => AIMessageChunk["usage_metadata"],
    onReply: ((delta: string) => void) | null,
  ) {
    super({});
    this.label = label;
    this.inner = inner;
    this.usage = usage;
    this.onReply = onReply;
  }

  override _llmType(): string {
    return "statecard-reply";
  }

  override getName(): string {
    return this.label;
  }

  override async _generate(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    manager?: CallbackManagerForLLMRun,
  ): Promise<ChatResult> {
    let text = "";
    for await (const chunk of this._streamResponseChunks(messages, options, manager)) text += chunk.text;
    const usage = this.usage();
    const message = new AIMessageChunk({ content: text, ...(usage ? { usage_metadata: usage } : {}) });
    return { generations: [{ text, message }] };
  }

  override async *_streamResponseChunks(
    _messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    for await (const delta of this.deltas()) {
      this.onReply?.(delta);
      const generation = new ChatGenerationChunk({ text: delta, message: new AIMessageChunk({ content: delta }) });
      yield generation;
      await manager?.handleLLMNewToken(delta, undefined, undefined, undefined, undefined, { chunk: generation });
    }
    const usage = this.usage();
    yield new ChatGenerationChunk({
      text: "",
      message: new AIMessageChunk({ content: "", ...(usage ? { usage_metadata: usage } : {}) }),
    });
  }

  /** The pieces of the reply, as soon as it is sure that no secret begins in them. */
  private async *deltas(): AsyncGenerator<string> {
    const firstCall = new FirstCall();
    const scanner = new ReplyScanner();
    const redactor = new StreamRedactor();
    for await (const chunk of this.inner()) {
      const delta = redactor.push(scanner.push(firstCall.textIn(chunk) || contentText(chunk.content)));
      if (delta && this.onReply) yield delta;
    }
    const rest = redactor.end();
    if (rest && this.onReply) yield rest;
  }
}
