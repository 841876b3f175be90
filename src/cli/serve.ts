import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { systemUser } from "../internal/system-user.ts";
import { listen, type Listening } from "../server/listen.ts";
import { openStore } from "../storage/open-store.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { EXIT, usage } from "./exit.ts";
import { declaredGraphs, loadGraph } from "./graphs.ts";
import { wholeNumber, type CommonOptions } from "./options.ts";

export interface ServeCommandOptions extends CommonOptions {
  readonly port?: string;
  readonly host?: string;
  readonly graphs?: string;
  readonly concurrency?: string;
  readonly rate?: string;
  readonly sweep?: boolean;
}

/** `statecard serve`: the HTTP API, until a signal ends it. */
export async function serveCommand(options: ServeCommandOptions): Promise<number> {
  const port = wholeNumber("--port", options.port, 0, 65_535);
  const concurrency = wholeNumber("--concurrency", options.concurrency, 1, 10_000);
  const rate = wholeNumber("--rate", options.rate, 1, 1_000_000);
  const store = openStore(options.db);
  const graphs = await loadGraphs(options.graphs, store);
  const server = await listen({
    graphs,
    store,
    ...(port === undefined ? {} : { port }),
    ...(options.host === undefined ? {} : { host: options.host }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(rate === undefined ? {} : { rate: { perSecond: rate, burst: 2 * rate } }),
    ...(options.sweep === undefined ? {} : { sweep: options.sweep }),
  });
  await announce(server, store, options);
  await untilSignal(server);
  return EXIT.ok;
}

async function loadGraphs(ids: string | undefined, store: SqlStore): Promise<Record<string, WorkflowGraph>> {
  const chosen = ids === undefined ? Object.keys(declaredGraphs()) : ids.split(",").map((id) => id.trim());
  if (chosen.length === 0) throw usage("langgraph.json in this folder declares no graphs to serve");
  const known = declaredGraphs();
  const unknown = chosen.find((id) => !Object.hasOwn(known, id));
  if (unknown !== undefined) {
    throw usage(
      `--graphs: langgraph.json here has no "${unknown}"; it has: ${Object.keys(known).join(", ") || "none"}`,
    );
  }
  const loaded: Record<string, WorkflowGraph> = {};
  for (const id of chosen) loaded[id] = await loadGraph(id, store);
  return loaded;
}

async function announce({ url, api }: Listening, store: SqlStore, { json }: CommonOptions): Promise<void> {
  const user = (await store.hasTokens()) ? null : systemUser();
  if (json) {
    process.stdout.write(`${JSON.stringify({ url, graphs: api.graphIds, user })}\n`);
    return;
  }
  const who =
    user === null
      ? "whoever has a token"
      : `${user}, on this machine only; npx statecard token create NAME adds people`;
  const lines = [
    `Serving ${api.graphIds.join(", ")} at ${url}`,
    `  for ${who}`,
    `  try: curl -s ${url}/tasks`,
    `  all of it: ${url}/openapi.json`,
    "Ctrl-C stops it; nothing is lost.",
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

/** Stops at the first signal, in order; at the second at once. */
function untilSignal(server: Listening): Promise<void> {
  return new Promise((resolve, reject) => {
    let isStopping = false;
    const onSignal = () => {
      if (isStopping) process.exit(EXIT.interrupted);
      isStopping = true;
      process.stderr.write(
        "Stopping: what runs commits its step. A second signal ends it at once; nothing is lost then either.\n",
      );
      server.stop().then(resolve, reject);
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
  });
}
