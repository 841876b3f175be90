import { readFileSync } from "node:fs";
import { Transform, Writable } from "node:stream";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { WorkflowError } from "../errors.ts";
import { redact } from "../internal/redact.ts";
import { mcpServer } from "../mcp/server.ts";
import { openStore } from "../storage/open-store.ts";
import { EXIT, exitWith } from "./exit.ts";
import { declaredGraphs, graphOfTask, loadGraph, rememberGraph } from "./graphs.ts";
import type { CommonOptions } from "./options.ts";
import { onStop } from "./stop-signals.ts";
import { printable } from "./terminal.ts";

export interface McpCommandOptions extends CommonOptions {
  readonly agent?: string;
}

/** The longest message that a client may send, in bytes. */
const MAX_MESSAGE_BYTES = 4_000_000;

/** `statecard mcp`: an MCP server on standard input and output, until the client is gone. */
export async function mcpCommand(options: McpCommandOptions): Promise<number> {
  const gone = new AbortController();
  const output = protocolOutput();
  const store = openStore(options.db);
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  const server = mcpServer(
    {
      store,
      signal: gone.signal,
      ...(options.agent === undefined ? {} : { agent: options.agent }),
      graphOf: (taskId, workflow) => graphOfTask(store, taskId, workflow, undefined),
      graphNamed: (id) => declaredGraph(id, store),
      remember: (taskId, graph) => rememberGraph(store, taskId, graph),
    },
    version,
  );
  // Whoever writes the protocol by hand looks at standard error.
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has no other way
  server.server.onerror = (error) => process.stderr.write(`INVALID_REQUEST: ${printable(redact(error.message))}\n`);
  const ended = new Promise<void>((resolve) => {
    onStop(() => (gone.signal.aborted ? process.exit(EXIT.interrupted) : resolve()));
    process.stdin.once("end", resolve).once("close", resolve).once("error", resolve);
    // A client that was killed reads nothing any more; each answer to it is an error of its own.
    process.stdout.on("error", resolve);
  });
  await server.connect(new StdioServerTransport(process.stdin.pipe(limited()) as never, output));
  await ended;
  gone.abort(new Error("the client is gone"));
  await server.close();
  await store.close();
  // What runs has lost its task; a call or a step that heeds no signal may still hold the process.
  return exitWith(EXIT.ok);
}

/** Only what langgraph.json declares: a client must not have a file of its choice run. */
async function declaredGraph(id: string, store: Parameters<typeof loadGraph>[1]) {
  const known = Object.keys(declaredGraphs());
  if (known.includes(id)) return loadGraph(id, store);
  const message = `langgraph.json has no graph of this name; it has: ${known.join(", ") || "none"}`;
  throw new WorkflowError("UNKNOWN_GRAPH", message, { details: { known } });
}

/** Standard output for the protocol alone: whatever else prints there, such as a graph's own code, goes to standard error. */
function protocolOutput(): Writable {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  // What cannot be written is an error of standard output, and heard there.
  return new Writable({ write: (chunk: Buffer, _encoding, done) => void write(chunk, () => done()) });
}

/** Ends the input where a message is longer than any that is meant well. */
function limited(): Transform {
  let open = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const end = chunk.lastIndexOf(10);
      open = end === -1 ? open + chunk.length : chunk.length - end - 1;
      if (open <= MAX_MESSAGE_BYTES) return done(null, chunk);
      process.stderr.write(`INVALID_REQUEST: a message has more than ${MAX_MESSAGE_BYTES} bytes\n`);
      process.stdin.destroy();
      done();
    },
  });
}
