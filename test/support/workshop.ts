import { defineTool, defineWorkflow, field, planField, type AnyWorkflow } from "statecard";
import { vi } from "vitest";
import { z } from "zod";

/** A door that a test opens: whoever waits for it goes on then. */
class Gate {
  readonly opened: Promise<void>;
  private release: () => void = () => {};

  constructor() {
    this.opened = new Promise((resolve) => {
      this.release = resolve;
    });
  }

  open(): void {
    this.release();
  }
}

/** A call that a test holds: it has begun, and does not end before it may. */
interface Held {
  readonly begun: Promise<void>;
  release(): void;
}

interface WorkshopOptions {
  readonly parallelCalls?: number;
  readonly timeoutMs?: number;
  readonly approve?: unknown;
  readonly limit?: number;
  readonly plan?: boolean;
}

/** A workflow with one tool, whose calls a test watches and holds. */
export class Workshop {
  /** `+a` where the body of call a begins, `-a` where it ends. */
  readonly log: string[] = [];
  /** The arguments of each body that began, by name. */
  readonly given = new Map<string, Readonly<Record<string, unknown>>>();
  readonly keys: string[] = [];
  /** What a call gives back, by name; its name and what it used unless set. */
  readonly gives = new Map<string, unknown>();
  mostAtOnce = 0;
  private running = 0;
  private readonly held = new Map<string, { readonly begun: Gate; readonly may: Gate }>();
  readonly workflow;

  constructor({ parallelCalls, timeoutMs, approve, limit, plan }: WorkshopOptions = {}) {
    const work = defineTool({
      description: "Works.",
      parameters: z.object({ name: z.string(), uses: z.unknown().optional(), key: z.string().optional() }),
      effect: "write",
      conflicts: ({ key }) => key ?? null,
      ...(limit === undefined ? {} : { limit }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      run: (args, { idempotencyKey }) => this.body(args, idempotencyKey),
    });
    this.workflow = defineWorkflow({
      name: "workshop",
      version: 1,
      state: { note: field(z.string()), ...(plan ? { plan: planField() } : {}) },
      tools: { work },
      initial: "working",
      ...(parallelCalls === undefined ? {} : { parallelCalls }),
      steps: {
        working: {
          tools: ["work"],
          writes: ["note"],
          to: ["working", "done"],
          ...(approve === undefined ? {} : { approve: { work: approve as never } }),
          ...(plan ? { plan: { into: "plan" } } : {}),
        },
        done: { final: true },
      },
    } as never) as AnyWorkflow;
  }

  private async body(args: { name: string; uses?: unknown }, key: string): Promise<unknown> {
    const { name, uses } = args;
    this.log.push(`+${name}`);
    this.given.set(name, args);
    this.keys.push(key);
    this.running++;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.running);
    const held = this.held.get(name);
    held?.begun.open();
    try {
      await (held?.may.opened ?? new Promise(setImmediate));
      if (name.startsWith("broken")) throw new Error(`${name} is out of order`);
    } finally {
      this.running--;
      this.log.push(`-${name}`);
    }
    return this.gives.has(name) ? this.gives.get(name) : { name, uses: uses ?? null };
  }

  /** Holds the call of that name when it comes. */
  hold(name: string): Held {
    const gates = { begun: new Gate(), may: new Gate() };
    this.held.set(name, gates);
    return { begun: gates.begun.opened, release: () => gates.may.open() };
  }

  /** Waits until a body has begun or ended. */
  async until(entry: string): Promise<void> {
    await vi.waitFor(
      () => {
        if (!this.log.includes(entry)) throw new Error(`${entry} has not come: ${this.log.join(" ")}`);
      },
      { timeout: 60_000, interval: 5 },
    );
  }

  count(entry: string): number {
    return this.log.filter((line) => line === entry).length;
  }
}

/** A call of the workshop's tool. */
export function work(
  name: string,
  more: { readonly id?: string; readonly uses?: unknown; readonly key?: string } = {},
) {
  const { id, ...args } = more;
  return { tool: "work", args: { name, ...args }, ...(id === undefined ? {} : { id }) };
}

export const ref = (text: string) => ({ $ref: text });
