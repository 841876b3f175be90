import { setImmediate as nextTurn } from "node:timers/promises";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import { Runnable, type RunnableConfig } from "@langchain/core/runnables";
import { isGraphBubbleUp, type LangGraphRunnableConfig } from "@langchain/langgraph";
import { isWorkflowError } from "../errors.ts";
import { redact, redactDeep } from "../internal/redact.ts";
import type { ChannelValues } from "./channels.ts";

type Body = (values: ChannelValues, config: LangGraphRunnableConfig) => Promise<Record<string, unknown>>;

/**
 * A node's body without the wrapping that LangGraph gives a plain function: that makes a trace object
 * and three copies of the config in every superstep, for a body that is traced as the node anyway.
 */
export class NodeBody extends Runnable<ChannelValues, Record<string, unknown>> {
  lc_namespace = ["statecard"];
  private readonly body: Body;

  constructor(name: string, body: Body) {
    super();
    this.name = name;
    this.body = body;
  }

  override invoke(values: ChannelValues, config: Partial<RunnableConfig> = {}): Promise<Record<string, unknown>> {
    const run = async () => {
      await giveWay();
      return this.body(values, config).catch(rethrow);
    };
    // What runs inside finds its config by the ambient context: interrupts, traced functions, other graphs.
    return isTraced(config)
      ? AsyncLocalStorageProviderSingleton.runWithConfig(config, run)
      : AsyncLocalStorageProviderSingleton.getInstance().run(ambient(config), run);
  }
}

/** How long steps may run one after the other before what else waits in the process has its turn. */
const LONGEST_MS = 10;
let lastTurn = 0;

/** A task whose steps never wait for anything outside would keep signals, timers and other tasks waiting to its end. */
async function giveWay(): Promise<void> {
  if (performance.now() - lastTurn < LONGEST_MS) return;
  await nextTurn();
  lastTurn = performance.now();
}

function isTraced({ callbacks }: Partial<RunnableConfig>): boolean {
  const handlers = Array.isArray(callbacks) ? callbacks : (callbacks?.handlers ?? []);
  return handlers.some((handler) => "name" in handler && handler.name === "langchain_tracer");
}

const CHILD_CONFIG = Symbol.for("lc:child_config");
const CONTEXT_VARIABLES = Symbol.for("lc:context_variables");

/** What `runWithConfig` puts into the ambient context, without the trace object that it makes for nobody. */
function ambient(config: Partial<RunnableConfig>): object {
  const around = AsyncLocalStorageProviderSingleton.getInstance().getStore() as
    | Readonly<Record<symbol, unknown>>
    | undefined;
  const variables = around?.[CONTEXT_VARIABLES];
  return {
    extra: { [CHILD_CONFIG]: config },
    ...(variables === undefined ? {} : { [CONTEXT_VARIABLES]: variables }),
  };
}

/** LangGraph stores and reports whatever a node throws, so a secret must not get that far. */
function rethrow(error: unknown): never {
  if (isWorkflowError(error)) error.redacted(redactDeep);
  else if (error instanceof Error && !isGraphBubbleUp(error)) {
    const message = redact(error.message);
    // A DOMException's message, as that of an abort, cannot be assigned.
    if (message !== error.message) Object.defineProperty(error, "message", { value: message, configurable: true });
  }
  throw error;
}

/** The router as an edge, without a trace of its own: it is a pure function of the record. */
export class Route extends Runnable<ChannelValues, string> {
  lc_namespace = ["statecard"];
  private readonly route: (values: ChannelValues) => string;

  constructor(route: (values: ChannelValues) => string) {
    super();
    this.name = "route";
    this.route = route;
  }

  override async invoke(values: ChannelValues): Promise<string> {
    return this.route(values);
  }
}

interface Writer {
  invoke: (input: unknown, config?: Partial<RunnableConfig>) => unknown;
  readonly name?: string;
  readonly func?: (input: unknown, config: Partial<RunnableConfig>) => unknown;
  readonly trace?: boolean;
  readonly writes?: readonly { readonly mapper?: Writer }[];
}

/**
 * Takes away what LangGraph adds to a node for others and what costs in every superstep:
 *
 * - The branch that reads the `goto` of a `Command`: our nodes return plain data, so it never leads anywhere.
 *   It stands before the node's own edge; where a version of LangGraph has it otherwise, all stays as it is.
 * - The writers' trace objects: each makes an ambient context with a random id of its own, although it is
 *   marked as not traced.
 */
export function leanWriters(node: unknown): void {
  const { writers = [] } = node as { readonly writers?: Writer[] };
  const branches = writers.filter(({ name }) => name === "<branch_run>");
  const [forCommands] = branches;
  if (forCommands && branches.length === 2) writers.splice(writers.indexOf(forCommands), 1);
  for (const writer of writers.flatMap((one) => [one, ...(one.writes ?? []).flatMap(({ mapper }) => mapper ?? [])])) {
    const { func, trace } = writer;
    if (func && trace === false) writer.invoke = async (input, config = {}) => func(input, config);
  }
}
