// A process that drives tasks as far as they go, and that dies where it is told to.
import { Command } from "@langchain/langgraph";
import { statecard, testing } from "../compiled.ts";
import { Ledger } from "./ledger.ts";
import { current, SCENARIOS } from "./scenarios.ts";

const { describeTask, isWorkflowError, postgresStore, signedIn, sqliteStore } = statecard;

export interface Setting {
  readonly store: "sqlite" | "postgres";
  readonly location: string;
  readonly ledgerPort: number;
  /** How far this process's clock is behind. */
  readonly behindMs: number;
}

export type Order =
  | {
      readonly kind: "run";
      readonly scenario: string;
      readonly task: string;
      readonly fault?: { readonly point: string; readonly nth: number };
    }
  | { readonly kind: "start" | "answer"; readonly scenario: string; readonly task: string; readonly at: number };

export interface Outcome {
  readonly task: string;
  /** The final state, or what came of a race: `won` or an error's code. */
  readonly result: unknown;
  /** How often a person was asked whether a call had happened. */
  readonly unknown: number;
}

const setting = JSON.parse(process.argv[2] ?? "{}") as Setting;
if (setting.behindMs > 0) {
  const real = Date.now.bind(Date);
  Date.now = () => real() - setting.behindMs;
}
const store =
  setting.store === "sqlite"
    ? sqliteStore(setting.location)
    : postgresStore(setting.location.split(" ")[0] ?? "", { schema: setting.location.split(" ")[1] ?? "public" });
const ledger = new Ledger(setting.ledgerPort);
const graphs = Object.fromEntries(
  Object.entries(SCENARIOS).map(([name, scenario]) => [name, { ...scenario, graph: scenario.compile(store, ledger) }]),
);
await store.tasks();

process.on("message", (order: Order) => {
  void carryOut(order).then(
    (outcome) => process.send?.(outcome),
    (error: unknown) => {
      process.send?.({ task: order.task, result: { failed: String((error as Error).stack) }, unknown: 0 });
    },
  );
});
process.send?.("ready");

async function carryOut(order: Order): Promise<Outcome> {
  current.task = order.task;
  if (order.kind !== "run") return { task: order.task, result: await race(order), unknown: 0 };
  let left = order.fault?.nth ?? 0;
  testing.onFaultPoint((point) => {
    if (point === order.fault?.point && --left === 0) process.kill(process.pid, "SIGKILL");
  });
  try {
    return await drive(order.scenario, order.task);
  } finally {
    testing.onFaultPoint(null);
  }
}

/** Starts, answers and wakes a task until it has ended. */
async function drive(name: string, task: string): Promise<Outcome> {
  const { graph, message, answer } = graphs[name] ?? raise(`no scenario ${name}`);
  const config = (person?: string) => ({ configurable: { thread_id: task, ...(person ? signedIn(person) : {}) } });
  let unknown = 0;
  for (let turn = 0; turn < 100; turn++) {
    const standing = await describeTask(store, task).catch((error: unknown) => {
      if (isWorkflowError(error, "UNKNOWN_TASK")) return null;
      throw error;
    });
    if (standing?.status === "completed") {
      const { step, completedSteps, state } = standing;
      return { task, result: { step, completedSteps, state }, unknown };
    }
    const open = standing?.waiting?.[0];
    const turnsTo = async (input: unknown, person?: string) => {
      await graph.invoke(input as never, config(person)).catch(async (error: unknown) => {
        // A killed owner's lease is free at once; a living one's never is here.
        if (!isWorkflowError(error, "ALREADY_APPROVED", "STALE_RESUME")) throw error;
      });
    };
    if (!standing) await turnsTo({ message });
    else if (!open) await turnsTo(null);
    else if (open.kind === "question") {
      await turnsTo(new Command({ resume: { [open.id]: answer(open.question) } }), "cleo");
    } else if (open.kind === "unknown") {
      unknown++;
      const happened = (await ledger.of(task)).some((effect) => effect.to === open.args?.to);
      await turnsTo(new Command({ resume: { [open.id]: happened ? "approve" : "reject" } }), "ada");
    } else {
      for (const person of ["ada", "bob"].slice(0, open.count ?? 1)) {
        await turnsTo(new Command({ resume: { [open.id]: "approve" } }), person);
      }
    }
  }
  return raise(`task ${task} did not end`);
}

/** One of several processes that do the same thing to a task at the same moment. */
async function race(order: Extract<Order, { kind: "start" | "answer" }>): Promise<string> {
  const { graph, message } = graphs[order.scenario] ?? raise(`no scenario ${order.scenario}`);
  const config = { configurable: { thread_id: order.task } };
  const wait = order.at - Date.now() - setting.behindMs;
  if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
  try {
    await graph.invoke(
      (order.kind === "start" ? { message } : new Command({ resume: { "q1.0": "ada" } })) as never,
      config,
    );
    return "won";
  } catch (error) {
    if (isWorkflowError(error)) return error.code;
    throw error;
  }
}

function raise(message: string): never {
  throw new Error(message);
}
