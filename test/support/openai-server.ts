import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** The body of a request to the chat-completions endpoint, as far as tests look at it. */
export interface SentRequest {
  readonly model: string;
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly response_format?: {
    readonly type: string;
    readonly json_schema?: { readonly name: string; readonly strict?: boolean; readonly schema: object };
  };
  readonly tools?: readonly { readonly function: { readonly name: string; readonly parameters: object } }[];
  readonly tool_choice?: unknown;
}

/** An answer that the server writes: as content, or as a tool call where tools were sent. */
interface Answer {
  readonly kind: "answer";
  readonly text: string;
  readonly finish?: "length" | "content_filter";
  readonly toolCallId?: string;
  /** The arguments of another tool call after the first. */
  readonly secondCall?: string;
  /** What happens in the middle of the answer. */
  readonly breaks?: "cut" | "stall";
}

/** What the server does with one request. */
export type Behaviour =
  | Answer
  | { readonly kind: "refusal"; readonly text: string }
  | { readonly kind: "error"; readonly status: number; readonly message: string; readonly retryAfter?: string }
  | { readonly kind: "stall"; readonly headers: boolean };

/** The tokens that the server reports for every answer. */
export const REPORTED = { prompt: 120, cached: 64, completion: 30 } as const;

type Options = Pick<Answer, "toolCallId"> & { readonly secondCall?: object };

/** A right answer. */
export function decision(given: object, options: Options = {}): Behaviour {
  const { secondCall, ...rest } = options;
  const second = secondCall === undefined ? {} : { secondCall: JSON.stringify(secondCall) };
  return { kind: "answer", text: JSON.stringify(given), ...rest, ...second };
}

/** An answer of any text, malformed JSON for example. */
export function text(raw: string): Behaviour {
  return { kind: "answer", text: raw };
}

/** An answer that the provider's output limit ended. */
export function cutAtLimit(raw: string): Behaviour {
  return { kind: "answer", text: raw, finish: "length" };
}

/** An answer that the provider's content filter ended. */
export function filtered(raw = ""): Behaviour {
  return { kind: "answer", text: raw, finish: "content_filter" };
}

/** The connection breaks in the middle of the answer. */
export function cutStream(given: object): Behaviour {
  return { kind: "answer", text: JSON.stringify(given), breaks: "cut" };
}

/** Half of the answer comes, then nothing more. */
export function stallMidway(given: object): Behaviour {
  return { kind: "answer", text: JSON.stringify(given), breaks: "stall" };
}

/** The headers come, then nothing. */
export function stall(): Behaviour {
  return { kind: "stall", headers: true };
}

/** Not even the headers come. */
export function stallBeforeHeaders(): Behaviour {
  return { kind: "stall", headers: false };
}

export function refusal(said: string): Behaviour {
  return { kind: "refusal", text: said };
}

export function httpError(status: number, message: string, retryAfter?: string): Behaviour {
  return { kind: "error", status, message, ...(retryAfter === undefined ? {} : { retryAfter }) };
}

export function tooManyRequests(retryAfter?: string): Behaviour {
  return httpError(429, "Rate limit reached", retryAfter);
}

export interface OpenAIServer {
  /** For `configuration: { baseURL }`. */
  readonly baseURL: string;
  /** The requests so far, oldest first, those answered by an error too. */
  readonly requests: readonly SentRequest[];
  /** How many behaviours of the script are left. */
  remaining(): number;
  close(): Promise<void>;
}

export interface OpenAIServerOptions {
  /** Answers requests that have `response_format` with HTTP 400; they take nothing from the script. */
  readonly rejectsResponseFormat?: boolean;
}

/**
 * Starts a server on 127.0.0.1 that speaks OpenAI's chat-completions protocol and does with each
 * request what the script says next. A request that the script does not expect gets HTTP 400.
 *
 * @example const server = await startOpenAIServer([tooManyRequests(), decision({ next: "done" })]);
 */
export async function startOpenAIServer(
  script: readonly Behaviour[],
  options: OpenAIServerOptions = {},
): Promise<OpenAIServer> {
  const requests: SentRequest[] = [];
  const left = [...script];
  const behave = (sent: SentRequest): Behaviour => {
    if (options.rejectsResponseFormat && sent.response_format) {
      return httpError(400, "Unsupported parameter: 'response_format' is not supported by this server");
    }
    return left.shift() ?? httpError(400, `request ${requests.length} was not expected`);
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readBody(request);
    if (request.method !== "POST" || request.url !== "/v1/chat/completions") {
      sendJson(response, 404, { error: { message: `no ${request.method} ${request.url} here` } });
      return;
    }
    const sent = JSON.parse(body) as SentRequest;
    requests.push(sent);
    await respond(response, sent, behave(sent));
  };
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    baseURL: `http://127.0.0.1:${port}/v1`,
    requests,
    remaining: () => left.length,
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = "";
  request.setEncoding("utf8");
  for await (const piece of request) body += String(piece);
  return body;
}

async function respond(response: ServerResponse, sent: SentRequest, behaviour: Behaviour): Promise<void> {
  switch (behaviour.kind) {
    case "stall":
      if (behaviour.headers) openStream(response);
      return;
    case "error": {
      const headers: Record<string, string> =
        behaviour.retryAfter === undefined ? {} : { "retry-after": behaviour.retryAfter };
      sendJson(response, behaviour.status, { error: { message: behaviour.message, type: "test" } }, headers);
      return;
    }
    case "answer":
    case "refusal":
      await (sent.stream ? sendStream(response, sent, behaviour) : sendWhole(response, sent, behaviour));
  }
}

type Spoken = Extract<Behaviour, { kind: "answer" | "refusal" }>;

async function sendWhole(response: ServerResponse, sent: SentRequest, spoken: Spoken): Promise<void> {
  const { message, finish } = wholeMessage(sent, spoken);
  const completion = {
    ...frame(sent, "chat.completion"),
    choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: finish, logprobs: null }],
    usage: usage(),
  };
  if (spoken.kind === "refusal" || !spoken.breaks) {
    sendJson(response, 200, completion);
    return;
  }
  const body = JSON.stringify(completion);
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
  await write(response, body.slice(0, body.length / 2));
  if (spoken.breaks === "cut") response.socket?.destroy();
}

function wholeMessage(sent: SentRequest, spoken: Spoken): { message: object; finish: string } {
  if (spoken.kind === "refusal") return { message: { content: null, refusal: spoken.text }, finish: "stop" };
  const called = calledTool(sent);
  if (called === undefined) {
    return { message: { content: spoken.text, refusal: null }, finish: spoken.finish ?? "stop" };
  }
  const call = (id: string, text: string) => ({ id, type: "function", function: { name: called, arguments: text } });
  const calls = [call(spoken.toolCallId ?? "call_1", spoken.text)];
  if (spoken.secondCall !== undefined) calls.push(call("call_2", spoken.secondCall));
  return { message: { content: null, refusal: null, tool_calls: calls }, finish: spoken.finish ?? "tool_calls" };
}

async function sendStream(response: ServerResponse, sent: SentRequest, spoken: Spoken): Promise<void> {
  openStream(response);
  const send = (choice: object) =>
    write(
      response,
      event({ ...frame(sent, "chat.completion.chunk"), choices: [{ index: 0, logprobs: null, ...choice }] }),
    );
  const { deltas, finish } = streamedMessage(sent, spoken);
  const breaks = spoken.kind === "answer" ? spoken.breaks : undefined;
  const written = breaks ? deltas.slice(0, Math.ceil(deltas.length / 2)) : deltas;
  for (const delta of written) await send({ delta, finish_reason: null });
  if (breaks === "cut") response.socket?.destroy();
  if (breaks) return;
  await send({ delta: {}, finish_reason: finish });
  if (sent.stream_options?.include_usage) {
    await write(response, event({ ...frame(sent, "chat.completion.chunk"), choices: [], usage: usage() }));
  }
  response.end("data: [DONE]\n\n");
}

function streamedMessage(sent: SentRequest, spoken: Spoken): { deltas: readonly object[]; finish: string } {
  if (spoken.kind === "refusal") {
    const said = pieces(spoken.text).map((piece) => ({ refusal: piece }));
    return { deltas: [{ role: "assistant", content: null, refusal: "" }, ...said], finish: "stop" };
  }
  const called = calledTool(sent);
  if (called === undefined) {
    const said = pieces(spoken.text).map((piece) => ({ content: piece }));
    return { deltas: [{ role: "assistant", content: "" }, ...said], finish: spoken.finish ?? "stop" };
  }
  const call = (index: number, id: string, text: string) => [
    { tool_calls: [{ index, id, type: "function", function: { name: called, arguments: "" } }] },
    ...pieces(text).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
  ];
  const deltas = [
    { role: "assistant", content: null },
    ...call(0, spoken.toolCallId ?? "call_1", spoken.text),
    ...(spoken.secondCall === undefined ? [] : call(1, "call_2", spoken.secondCall)),
  ];
  return { deltas, finish: spoken.finish ?? "tool_calls" };
}

function calledTool(sent: SentRequest): string | undefined {
  return sent.tools?.[0]?.function.name;
}

function pieces(whole: string): readonly string[] {
  return whole.match(/[\s\S]{1,7}/g) ?? [];
}

function frame(sent: SentRequest, object: string): object {
  return { id: "chatcmpl-1", object, created: 1_700_000_000, model: sent.model };
}

function usage(): object {
  return {
    prompt_tokens: REPORTED.prompt,
    completion_tokens: REPORTED.completion,
    total_tokens: REPORTED.prompt + REPORTED.completion,
    prompt_tokens_details: { cached_tokens: REPORTED.cached },
  };
}

function openStream(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  response.flushHeaders();
}

function event(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** Writes and waits until the bytes are with the operating system, so that a cut comes after them. */
async function write(response: ServerResponse, bytes: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    response.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}

function sendJson(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}
