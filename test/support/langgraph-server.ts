import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync } from "node:fs";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** What the server is started with: every example, and beside them a graph of the tests. */
const CONFIG = "served.json";
const PAUSES = "pauses-graph.ts";
const START_ATTEMPTS = 3;
const POLLS = 400;
const POLL_EVERY_MS = 100;
/** LangGraph's and the model provider's settings of whoever runs the tests must not reach the server. */
const FOREIGN_SETTINGS = /^(?:OPENAI|LANGSMITH|LANGCHAIN|LANGGRAPH|STATECARD)_/;

/** True where `npm run build` was run: the graphs import the package as it is published. */
export const isBuilt = existsSync(join(ROOT, "dist/index.js")) && existsSync(join(ROOT, "dist/cli/main.js"));

/** What a command of the command line came to. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A real local LangGraph server on a project of its own in a temporary folder. */
export interface LangGraphServer {
  readonly url: string;
  /** Where it runs: a copy of this package. */
  readonly folder: string;
  /** The graph `pauses`, for the command line: only the server has it by this name. */
  readonly graphFile: string;
  /** The file with the tasks, for other processes to work on. */
  readonly database: string;
  readonly client: Client;
  /** Runs the package's command line in the same project. */
  command(...parameters: string[]): Promise<CommandResult>;
  stop(): Promise<void>;
}

/**
 * Starts `langgraphjs dev` on a copy of this package, so that nothing is written into the checkout
 * and a build that runs meanwhile does not restart it.
 */
export async function startLangGraphServer(): Promise<LangGraphServer> {
  const folder = await copyPackage();
  const database = join(folder, "tasks.db");
  const environment = {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !FOREIGN_SETTINGS.test(name))),
    STATECARD_DB: database,
    LANGGRAPH_CLI_NO_ANALYTICS: "1",
  };
  try {
    const { url, server } = await startOnFreePort(folder, environment);
    return {
      url,
      folder,
      graphFile: PAUSES,
      database,
      client: clientOf(url),
      command: (...parameters) => runCommand(folder, environment, parameters),
      async stop() {
        await endGroup(server);
        await remove(folder);
      },
    };
  } catch (error) {
    await remove(folder);
    throw error;
  }
}

/** A client that does not try again: a refusal is what the tests want to see. */
function clientOf(url: string): Client {
  return new Client({ apiUrl: url, apiKey: null, callerOptions: { maxRetries: 0 } });
}

/** A client that keeps the text of everything that came back. */
export function recordingClient(url: string): { client: Client; received: () => Promise<readonly string[]> } {
  const bodies: Promise<string>[] = [];
  const recordingFetch = async (...parameters: Parameters<typeof fetch>): Promise<Response> => {
    const response = await fetch(...parameters);
    const headers = JSON.stringify([...response.headers]);
    bodies.push(
      response
        .clone()
        .text()
        .then((body) => `${headers}\n${body}`),
    );
    return response;
  };
  const client = new Client({ apiUrl: url, apiKey: null, callerOptions: { maxRetries: 0, fetch: recordingFetch } });
  return { client, received: () => Promise.all(bodies) };
}

async function copyPackage(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "statecard-server-"));
  for (const part of ["package.json", "dist", "graphs"])
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  cpSync(join(ROOT, "test/support", PAUSES), join(folder, PAUSES));
  const config = JSON.parse(await readFile(join(ROOT, "langgraph.json"), "utf8")) as { readonly graphs: object };
  // A developer's own .env stays out, whatever the project's file says.
  const own = { ...config, env: {} };
  await writeFile(join(folder, "langgraph.json"), JSON.stringify(own));
  // The HTTP API reads langgraph.json: it does not know the tests' graph, and so wakes none of its tasks.
  const served = { ...own, graphs: { ...config.graphs, pauses: `./${PAUSES}:graph` } };
  await writeFile(join(folder, CONFIG), JSON.stringify(served));
  return folder;
}

async function startOnFreePort(
  folder: string,
  environment: NodeJS.ProcessEnv,
): Promise<{ url: string; server: ChildProcess }> {
  let output = "";
  for (let attempt = 0; attempt < START_ATTEMPTS; attempt++) {
    const port = await freePort();
    const program = join(folder, "node_modules/.bin/langgraphjs");
    const options = ["dev", "--no-browser", "--host", "127.0.0.1", "--port", String(port), "--config", CONFIG];
    const server = spawn(process.execPath, [program, ...options], {
      cwd: folder,
      env: environment,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    // A test run that is stopped early must not leave the server behind.
    process.once("exit", () => killGroup(server));
    output = "";
    server.stdout.on("data", (text: Buffer) => (output += text.toString()));
    server.stderr.on("data", (text: Buffer) => (output += text.toString()));
    const url = `http://127.0.0.1:${port}`;
    if (await answers(url, server)) return { url, server };
    await endGroup(server);
  }
  throw new Error(`the LangGraph server did not start; it said:\n${output.slice(-4000)}`);
}

/** Polls until the server answers; false where it has ended or its port was taken meanwhile. */
async function answers(url: string, server: ChildProcess): Promise<boolean> {
  for (let poll = 0; poll < POLLS && server.exitCode === null; poll++) {
    const response = await fetch(`${url}/ok`).catch(() => null);
    if (response?.ok) return true;
    await sleep(POLL_EVERY_MS);
  }
  return false;
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}

function remove(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** Ends the server with the watcher and the worker that it has started. */
async function endGroup(server: ChildProcess): Promise<void> {
  const isRunning = server.exitCode === null && server.signalCode === null;
  const ended = isRunning ? once(server, "exit") : Promise.resolve();
  killGroup(server);
  await ended;
}

function killGroup(server: ChildProcess): void {
  if (server.pid === undefined) return;
  try {
    process.kill(-server.pid, "SIGKILL");
  } catch (error) {
    // Nobody of the group is left.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

function runCommand(
  folder: string,
  environment: NodeJS.ProcessEnv,
  parameters: readonly string[],
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const program = join(folder, "dist/cli/main.js");
    const child = execFile(
      process.execPath,
      [program, ...parameters],
      { cwd: folder, env: environment },
      (_error, stdout, stderr) => resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    );
  });
}
