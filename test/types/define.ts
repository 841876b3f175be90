// Checked by the type checker only, never run: each line that is expected to be an error must be one.
import { Command, INTERRUPT, StateGraph, StateSchema } from "@langchain/langgraph";
import {
  answer,
  compile,
  defineTool,
  defineWorkflow,
  field,
  sqliteStore,
  type Execution,
  type StepContext,
} from "statecard";
import { z } from "zod";

/** Holds exactly where two types are the same, and never for `any`. */
type Same<A, B> = 0 extends 1 & A ? false : [A, B] extends [B, A] ? true : false;
const same = <A, B>(proof: Same<A, B>) => proof;

// ---------------------------------------------------------------- correct use infers well

const clients = { stock: { has: (name: string) => name !== "" } };

export const ticket = defineWorkflow({
  name: "ticket",
  version: 1,
  input: ["ticketType"],
  state: {
    ticketType: field(z.string()).describe("what is broken"),
    priority: field(z.enum(["P1", "P2", "P3"])),
    solution: field(z.string()).writeOnce(),
    tags: field(z.array(z.string())).appendOnly(),
    attempts: field(z.number()).runtimeOnly(),
  },
  checks: {
    "urgent is known": (state) => state.priority === "P1" && state.ticketType === null && "what is urgent?",
  },
  initial: "init",
  steps: {
    init: { to: ["deciding"], writes: ["ticketType", "priority"] },
    deciding: {
      requires: ["ticketType"],
      to: ["done", { to: "init", when: (state) => state.attempts === 0, because: "tried already" }],
      run: (state, context) => {
        same<typeof state.ticketType, string | null>(true);
        same<typeof state.priority, "P1" | "P2" | "P3" | null>(true);
        same<typeof context, StepContext>(true);
        const stock = context.clients.stock as typeof clients.stock;
        return stock.has("router")
          ? { patch: { solution: state.ticketType ?? "", tags: ["new"], attempts: 1 }, next: "done" }
          : { ask: "Which one?", clear: ["priority"], next: "init" };
      },
    },
    done: { final: true },
  },
});

const graph = compile(ticket, { store: sqliteStore(":memory:"), clients });
const config = { configurable: { thread_id: "t" } };

const paused = await graph.invoke({ message: "the network is down" }, config);
same<typeof paused.priority, "P1" | "P2" | "P3" | null>(true);
same<typeof paused.solution, string | null>(true);
same<typeof paused.tags, string[] | null>(true);
same<typeof paused.execution, Execution>(true);
export const question: string | undefined = paused[INTERRUPT]?.[0]?.value?.requests[0]?.question;

const done = await graph.invoke(answer(paused, "P1"), config);
same<typeof done.attempts, number | null>(true);

await graph.invoke(null, config);
await graph.invoke({}, config);
await graph.invoke({ message: null, ticketType: "network" }, config);
await graph.invoke(new Command({ resume: { decisions: [] } }), config);

const tagged = graph.withConfig({ tags: ["x"] });
const again = await tagged.invoke({ message: "hello" }, config);
same<typeof again.priority, "P1" | "P2" | "P3" | null>(true);

for await (const chunk of await graph.stream({ message: "hello" }, { ...config, streamMode: "values" })) {
  const priority: "P1" | "P2" | "P3" | null | undefined = chunk.priority;
  void priority;
}
for await (const chunk of await tagged.stream(null, { ...config, streamMode: ["updates", "custom"] })) void chunk;

const snapshot = await graph.getState(config);
void snapshot.values;

export const outer = new StateGraph(
  new StateSchema({ message: z.string().nullable().default(null), solution: z.string().nullable().default(null) }),
)
  .addNode("support", graph)
  .addEdge("__start__", "support")
  .compile();

const shared = graph.runtime.clients;
void shared.stock;

/** A whole workflow as a step of another, with its own state. */
export const parent = defineWorkflow({
  name: "parent",
  version: 1,
  state: { outcome: field(z.string()) },
  initial: "support",
  steps: {
    support: {
      workflow: ticket,
      input: (state) => ({ message: state.outcome }),
      output: (child) => ({ patch: { outcome: child.status }, next: "end" }),
      to: ["end"],
    },
    end: { final: true },
  },
});

// ---------------------------------------------------------------- wrong names and values are errors

const state = { note: field(z.string()), level: field(z.enum(["low", "high"])), list: field(z.array(z.number())) };
const base = { name: "wrong", version: 1, state } as const;
const end = { final: true } as const;

// @ts-expect-error the first step is none of the steps
defineWorkflow({ ...base, initial: "start", steps: { work: { to: ["end"] }, end } });

// @ts-expect-error a transition to a step that there is not
defineWorkflow({ ...base, initial: "work", steps: { work: { to: ["end", "nowhere"] }, end } });

defineWorkflow({
  ...base,
  initial: "work",
  steps: {
    // @ts-expect-error a guarded transition to a step that there is not
    work: { to: ["end", { to: "nowhere", when: () => true, because: "it is open" }] },
    end,
  },
});

// @ts-expect-error a field in writes that there is not
defineWorkflow({ ...base, initial: "work", steps: { work: { writes: ["prio"], to: ["end"] }, end } });

defineWorkflow({
  ...base,
  initial: "work",
  // @ts-expect-error a field in requires that there is not
  steps: { work: { to: ["end"] }, end: { final: true, requires: ["prio"] } },
});

// @ts-expect-error a field in input that there is not
defineWorkflow({ ...base, input: ["prio"], initial: "work", steps: { work: { to: ["end"] }, end } });

defineWorkflow({
  ...base,
  initial: "work",
  steps: {
    // @ts-expect-error a value of the wrong type in a patch
    work: { to: ["end"], run: () => ({ patch: { note: 5 }, next: "end" }) },
    end,
  },
});

defineWorkflow({
  ...base,
  initial: "work",
  steps: {
    // @ts-expect-error a value outside of an enumeration in a patch
    work: { to: ["end"], run: () => ({ patch: { level: "middle" }, next: "end" }) },
    end,
  },
});

defineWorkflow({
  ...base,
  initial: "work",
  steps: {
    // @ts-expect-error an item of the wrong type in a list
    work: { to: ["end"], run: async () => ({ patch: { list: ["one"] }, next: "end" }) },
    end,
  },
});

defineWorkflow({
  ...base,
  initial: "work",
  steps: {
    // @ts-expect-error a field in clear that there is not
    work: { to: ["end"], run: () => ({ clear: ["prio"], next: "end" }) },
    end,
  },
});

defineWorkflow({
  ...base,
  initial: "work",
  steps: {
    // @ts-expect-error a next outside of all steps
    work: { to: ["end"], run: () => ({ next: "nowhere" }) },
    end,
  },
});

defineWorkflow({
  ...base,
  initial: "work",
  steps: {
    work: {
      to: ["end"],
      run: (now) => {
        // @ts-expect-error a field that the state does not have
        void now.prio;
        // @ts-expect-error the state is read-only
        now.note = "x";
        // @ts-expect-error a field may have no value yet
        const level: string = now.level;
        return { patch: { note: level }, next: "end" };
      },
    },
    end,
  },
});

defineWorkflow({
  ...base,
  initial: "work",
  // @ts-expect-error a guard on a field that there is not
  steps: { work: { to: [{ to: "end", when: (now) => now.prio === 1, because: "x" }] }, end },
});

defineWorkflow({
  ...base,
  // @ts-expect-error a rule about a field that there is not
  checks: { rule: (now) => now.prio === null && "missing" },
  initial: "work",
  steps: { work: { to: ["end"] }, end },
});

// @ts-expect-error only lists can be append-only
field(z.string()).appendOnly();

// @ts-expect-error a message is text
await graph.invoke({ message: 3 }, config);

// @ts-expect-error an input that there is not
await graph.invoke({ messages: "hello" }, config);

// @ts-expect-error a field that is not declared as input
await graph.invoke({ priority: "P1" }, config);

// @ts-expect-error an input of the wrong type
await graph.invoke({ ticketType: 5 }, config);

// @ts-expect-error the same holds for streams
await graph.stream({ priority: "P1" }, config);

// @ts-expect-error and with a config bound to the graph
await tagged.invoke({ message: 3 }, config);

// @ts-expect-error a field that a result does not have
void done.prio;

// @ts-expect-error a value outside of the enumeration
export const outside: "P9" | null = done.priority;

// @ts-expect-error a field of a result may have no value
export const known: string = done.solution;

// @ts-expect-error an answer is text
answer(paused, 5);

// @ts-expect-error no such option
compile(ticket, { modle: null });

// ---------------------------------------------------------------- tools and approvals

const pay = defineTool({
  description: "Pays.",
  parameters: z.object({ amount: z.number(), order: z.string() }),
  effect: "write",
  approve: ({ amount }) => amount > 100,
  run: ({ order }, { idempotencyKey }) => `${order} ${idempotencyKey}`,
});

export const paying = defineWorkflow({
  name: "paying",
  version: 1,
  state: { order: field(z.string()) },
  tools: { pay },
  initial: "asking",
  steps: {
    asking: { writes: ["order"], to: ["acting"] },
    acting: {
      tools: ["pay"],
      approve: {
        pay: (args, state) => {
          same<typeof args, { amount: number; order: string }>(true);
          same<typeof state.order, string | null>(true);
          return args.amount > 1000 && { count: 2, approvers: ["ada", "bob"] };
        },
      },
      deadline: { afterMs: 1000, to: "asking" },
      to: ["asking", "done"],
    },
    done: { final: true },
  },
});

defineWorkflow({
  name: "paying",
  version: 1,
  state: { order: field(z.string()) },
  tools: { pay },
  initial: "acting",
  steps: {
    // @ts-expect-error there is no such tool
    acting: { tools: ["play"], to: ["done"] },
    // @ts-expect-error there is no such tool
    second: { tools: ["pay"], approve: ["play"], to: ["done"] },
    // @ts-expect-error there is no such step
    third: { deadline: { afterMs: 1, to: "nowhere" }, to: ["done"] },
    done: { final: true },
  },
});
