import { compile, defineWorkflow, field, sqliteStore, type StepContext } from "statecard";
import { HttpApi, type ApiOptions } from "statecard/server";
import { expect, onTestFinished } from "vitest";
import { z } from "zod";
import { memoryLedger } from "../../graphs/refund/ledger.ts";
import { refundRules } from "../../graphs/refund/rules.ts";
import { refund } from "../../graphs/refund/workflow.ts";
import { ticketRules } from "../../graphs/ticket/rules.ts";
import { ticket } from "../../graphs/ticket/workflow.ts";
import { systemClock } from "../../src/internal/clock.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";

/** What the steps of an errand do. */
export interface Errands {
  /** Called when a step begins: it ends when this resolves, and fails when it rejects. */
  step(taskId: string, step: string): Promise<void> | void;
}

const begin = async ({ clients, taskId, step }: StepContext) => (clients.errands as Errands).step(taskId, step);

/** Three code steps, one after the other, that a test can hold, fail and count. */
const errand = defineWorkflow({
  name: "errand",
  version: 1,
  goal: "Run an errand.",
  state: { goal: field(z.string().max(500)), bought: field(z.number()).runtimeOnly() },
  input: ["goal"],
  initial: "going",
  steps: {
    going: { to: ["buying"], run: async (_state, context) => (await begin(context), { next: "buying" }) },
    buying: {
      to: ["returning"],
      run: async (_state, context) => (await begin(context), { patch: { bought: 1 }, next: "returning" }),
    },
    returning: { to: ["home"], run: async (_state, context) => (await begin(context), { next: "home" }) },
    home: { final: true },
  },
});

/** Something to wait for that a test brings about. */
export class Gate {
  open: () => void = () => {};
  readonly passed = new Promise<void>((resolve) => (this.open = resolve));
}

/** An API on a database of its own, as a test talks to it. */
export class TestApi {
  readonly api: HttpApi;
  readonly store: SqlStore;
  readonly payments = memoryLedger();
  readonly logged: string[] = [];
  errands: Errands = { step: () => {} };

  constructor(options: Partial<ApiOptions> = {}) {
    this.store = options.store ?? sqliteStore(":memory:");
    const { store } = this;
    const clock = options.clock ?? systemClock;
    const errands: Errands = { step: (taskId, step) => this.errands.step(taskId, step) };
    this.api = new HttpApi({
      graphs: {
        ticket: compile(ticket, { model: ticketRules(), store }),
        refund: compile(refund, { model: refundRules(), store, clock, clients: { ledger: this.payments } }),
        errand: compile(errand, { store, clients: { errands } }),
      },
      rate: { perSecond: 1_000_000, burst: 1_000_000 },
      log: (line) => void this.logged.push(line),
      ...options,
      store,
    });
    onTestFinished(async () => {
      await this.api.stop(0);
      await store.close();
    });
  }

  /** Sends a request from this machine. */
  async send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const all = new Headers({ host: "127.0.0.1", ...headers });
    const text = body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) };
    if (body !== undefined && !all.has("content-type")) all.set("content-type", "application/json");
    const request = new Request(`http://127.0.0.1${path}`, { method, headers: all, ...text });
    return this.api.fetch(request, { incoming: { socket: { remoteAddress: "127.0.0.1" } } });
  }

  async get(path: string, headers?: Record<string, string>): Promise<Answer> {
    return answerOf(await this.send("GET", path, undefined, headers));
  }

  async post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> {
    return answerOf(await this.send("POST", path, body, headers));
  }
}

/** A response that was read. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: any;
}

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: text === "" ? null : JSON.parse(text) };
}

/** Expects a problem in the one form that all have. */
export function expectProblem(answer: Answer, status: number, code: string, says?: RegExp): void {
  expect({ status: answer.status, code: answer.json?.code, says: answer.json?.detail }).toMatchObject({ status, code });
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  expect(Object.keys(answer.json).toSorted()).toEqual(["code", "detail", "details", "status", "title"]);
  expect(answer.json).toMatchObject({ title: code, status });
  if (says) expect(answer.json.detail).toMatch(says);
}

/** A frame of a stream of events. */
export interface ServerSentEvent {
  readonly id?: string;
  readonly event?: string;
  readonly data: any;
}

/** Reads a stream of events as a client does. */
export class EventReader {
  private readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  private readonly decoder = new TextDecoder();
  private text = "";
  /** Everything that is no event: comments and `retry`. */
  readonly others: string[] = [];

  constructor(response: Response) {
    if (!response.body) throw new Error("the response has no body");
    this.reader = response.body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    onTestFinished(() => this.close());
  }

  /** The next event; null at the end. */
  async next(): Promise<ServerSentEvent | null> {
    for (;;) {
      const end = this.text.indexOf("\n\n");
      if (end >= 0) {
        const block = this.text.slice(0, end);
        this.text = this.text.slice(end + 2);
        const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s, 2)));
        if (fields.data !== undefined) return { ...fields, data: JSON.parse(fields.data) };
        this.others.push(block);
        continue;
      }
      const { done, value } = await this.reader.read();
      if (done) return null;
      this.text += this.decoder.decode(value, { stream: true });
    }
  }

  /** Reads up to an event that fits, which is the last of the list. */
  async until(fits: (event: ServerSentEvent) => boolean): Promise<ServerSentEvent[]> {
    const events: ServerSentEvent[] = [];
    for (;;) {
      const event = await this.next();
      if (!event) throw new Error(`the stream ended after ${JSON.stringify(events.map((each) => each.event))}`);
      events.push(event);
      if (fits(event)) return events;
    }
  }

  /** Everything to the end. */
  async all(): Promise<ServerSentEvent[]> {
    const events: ServerSentEvent[] = [];
    for (let event = await this.next(); event; event = await this.next()) events.push(event);
    return events;
  }

  async close(): Promise<void> {
    await this.reader.cancel().catch(() => {});
  }
}
