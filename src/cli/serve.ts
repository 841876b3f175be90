import { systemUser } from "../internal/system-user.ts";
import { listen, type Listening } from "../server/listen.ts";
import { openStore } from "../storage/open-store.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { EXIT, exitWith, usage } from "./exit.ts";
import { declaredGraphs, graphIds, loadGraphs } from "./graphs.ts";
import { timeLimitsIn, wholeNumber, type CommonOptions, type TimeLimitOptions } from "./options.ts";
import { untilStopped } from "./stop-signals.ts";

export interface ServeCommandOptions extends CommonOptions, TimeLimitOptions {
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
  const timeLimits = timeLimitsIn(options);
  const store = openStore(options.db);
  const graphs = Object.fromEntries(await loadGraphs(declaredIds(options.graphs), store));
  const server = await listen({
    graphs,
    store,
    ...(port === undefined ? {} : { port }),
    ...(options.host === undefined ? {} : { host: options.host }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(rate === undefined ? {} : { rate: { perSecond: rate, burst: 2 * rate } }),
    timeLimits,
    ...(options.sweep === undefined ? {} : { sweep: options.sweep }),
  });
  // It serves and sweeps already.
  const stopped = untilStopped(
    () => server.stop(),
    "Stopping: what runs commits its step. A second signal ends it at once; nothing is lost then either.",
  );
  try {
    await announce(server, store, options);
  } catch (error) {
    // A server that cannot reach its database would look alive to whoever watches it.
    await server.stop(0);
    throw error;
  }
  await stopped;
  // A step that was cut off may go on for as long as it likes; it can commit nothing any more.
  return exitWith(EXIT.ok);
}

/**
 * Only what langgraph.json declares: there the other commands find the graphs of the server's tasks.
 *
 * @throws USAGE.
 */
function declaredIds(option: string | undefined): readonly string[] {
  const ids = graphIds(option);
  const known = declaredGraphs();
  const unknown = ids.find((id) => !Object.hasOwn(known, id));
  if (unknown === undefined) return ids;
  throw usage(`--graphs: langgraph.json here has no "${unknown}"; it has: ${Object.keys(known).join(", ") || "none"}`);
}

async function announce({ url, api }: Listening, store: SqlStore, { json }: CommonOptions): Promise<void> {
  const user = (await store.tokens.hasAny()) ? null : systemUser();
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
