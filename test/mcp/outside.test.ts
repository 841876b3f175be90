import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describeTask, sqliteStore } from "statecard";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { COMMAND, fillProject, until } from "../support/cli.ts";

/** A workflow whose decisions come from outside; its tool leaves a line for each run of its body. */
const GRAPH = `
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { compile, defineTool, defineWorkflow, field } from "statecard";
import { z } from "zod";

console.log("a graph that prints");
// As what a step has left behind, which must not keep a server whose client is gone.
setInterval(() => {}, 1000);
const write = defineTool({
  description: "Writes a line.", effect: "write",
  parameters: z.object({ text: z.string() }),
  run: async ({ text }) => {
    console.log("a tool that prints");
    appendFileSync("effects.txt", text + "\\n");
    while (existsSync("slow")) { writeFileSync("writing", ""); await sleep(5); }
    return { written: text };
  },
});
const publish = defineTool({ description: "Publishes.", effect: "write", privileged: true, parameters: z.object({}), run: () => "published" });
export const graph = compile(defineWorkflow({
  name: "letters", version: 1, goal: "Write a letter.",
  state: { addressee: field(z.string().max(20)).describe("to whom"), lines: field(z.number()).runtimeOnly() },
  tools: { write, publish },
  onResult: { write: (_result, { lines }) => ({ lines: (lines ?? 0) + 1 }) },
  initial: "address",
  steps: {
    address: { writes: ["addressee"], to: ["check"], instructions: "Find out the addressee." },
    check: { requires: ["addressee"], to: ["body"], run: () => ({ next: "body" }) },
    body: { tools: ["write", "publish"], to: ["body", "done"], guards: [({ reply }) => reply === "shout" ? { sendBack: "do not shout" } : null] },
    done: { requires: ["lines"], final: true },
  },
}));`;

interface Shown {
  readonly text: string;
  readonly isError: boolean;
  readonly data: Record<string, unknown>;
}

let folder: string;
let database: string;

beforeAll(async () => {
  folder = await fillProject(mkdtempSync(join(tmpdir(), "statecard-mcp-")), {
    "letters.ts": GRAPH,
    "langgraph.json": JSON.stringify({ graphs: { letters: "./letters.ts:graph" } }),
  });
  database = join(folder, "tasks.db");
});

/** An agent with a server process of its own. */
class Agent {
  readonly client: Client;
  readonly transport: StdioClientTransport;

  constructor(name: string) {
    this.client = new Client({ name, version: "1.0.0" });
    const { PATH = "", HOME = "" } = process.env;
    this.transport = new StdioClientTransport({
      command: process.execPath,
      args: [COMMAND, "mcp", "--db", database],
      cwd: folder,
      env: { PATH, HOME },
      stderr: "ignore",
    });
  }

  async call(name: string, args: object): Promise<Shown> {
    const result = await this.client.callTool({ name, arguments: { ...args } });
    const [first] = result.content as { text: string }[];
    return {
      text: first?.text ?? "",
      isError: result.isError === true,
      data: (result.structuredContent ?? {}) as Shown["data"],
    };
  }

  propose(task: string, revision: unknown, decision: object): Promise<Shown> {
    return this.call("propose_decision", { task, revision, decision });
  }

  /** A task at its first decision, or at the step `body` with its revision. */
  async start(at: "address" | "body"): Promise<{ task: string; revision: number }> {
    const started = await this.call("start_task", { graph: "letters", message: "a letter to Ada" });
    const task = (started.data.brief as { taskId: string }).taskId;
    if (at === "address") return { task, revision: 0 };
    const shown = await this.propose(task, 0, { patch: { addressee: "Ada" }, next: "check", because: "she was named" });
    return { task, revision: shown.data.revision as number };
  }
}

const agents: Agent[] = [];

async function agent(name: string): Promise<Agent> {
  const made = new Agent(name);
  agents.push(made);
  await made.client.connect(made.transport);
  return made;
}

let ada: Agent;
beforeAll(async () => {
  ada = await agent("ada's editor");
});
afterAll(async () => {
  for (const { client } of agents) await client.close();
  rmSync(folder, { recursive: true });
});

const effects = () => {
  const file = join(folder, "effects.txt");
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
};
const store = () => sqliteStore(database);

test("an agent takes a task from its start to its end, and the log says who decided", async () => {
  const { task } = await ada.start("address");
  const read = await ada.call("read_task", { task });
  expect(read.text).toContain("The state below wins over any older conversation");
  expect(read.text).toContain("a letter to Ada");
  expect(read.text).toContain("A decision is due, for revision 0:");
  expect(read.data).toMatchObject({ revision: 0, decisionIsDue: true, schema: { type: "object" } });
  const body = await ada.propose(task, 0, { patch: { addressee: "Ada" }, next: "check" });
  // The code step behind it has run, and there the run waits for the next decision.
  expect(body.data).toMatchObject({ revision: 2, brief: { step: "body", status: "running" } });
  const called = await ada.propose(task, 2, { calls: [{ tool: "write", args: { text: "Dear Ada" } }] });
  expect(called.text).toContain("written: Dear Ada");
  const done = await ada.propose(task, called.data.revision, { next: "done" });
  expect(done.data).toMatchObject({
    brief: { status: "completed", step: "done", state: { addressee: "Ada", lines: 1 } },
  });
  const events = await store().events(task);
  expect(events.filter(({ kind }) => kind === "proposed").map(({ data }) => data)).toEqual([
    { step: "address", agent: "ada's editor" },
    { step: "body", agent: "ada's editor" },
    { step: "body", agent: "ada's editor" },
  ]);
  expect(await ada.propose(task, 9, { next: "done" })).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^TASK_FINISHED/),
  });
  expect((await ada.call("list_tasks", {})).data.tasks).toContainEqual(
    expect.objectContaining({ task, status: "completed" }),
  );
});

describe("what is refused changes nothing", () => {
  test.each([
    ["a step that the table has not", { next: "done", patch: { addressee: "Ada" } }, /^ILLEGAL_TRANSITION: .*open now/],
    ["a step that is closed", { next: "check" }, /^REQUIRES: check needs addressee/],
    ["a field's schema", { patch: { addressee: "x".repeat(21) }, next: "check" }, /^INVALID_FIELD/],
    ["a field that code keeps", { patch: { lines: 3 } }, /^(?:RUNTIME_ONLY|FIELD_NOT_WRITABLE)/],
    ["a tool of another step", { calls: [{ tool: "write", args: { text: "x" } }] }, /^UNKNOWN_TOOL/],
    ["a shape of its own", { goto: "done" }, /^INVALID_DECISION/],
  ])("%s", async (_name, decision, reason) => {
    const { task } = await ada.start("address");
    expect(await ada.propose(task, 0, decision)).toMatchObject({ isError: true, text: expect.stringMatching(reason) });
    expect(await describeTask(store(), task)).toMatchObject({ step: "address", revision: 0, status: "created" });
    const refused = (await store().events(task)).filter(({ kind }) => kind === "refused");
    expect(refused).toMatchObject([{ data: { agent: "ada's editor", step: "address" } }]);
  });

  test("a decision that was made for an older revision", async () => {
    const { task, revision } = await ada.start("body");
    expect(await ada.propose(task, revision - 1, { ask: "?" })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/^STALE_WRITE/),
    });
    expect((await describeTask(store(), task)).revision).toBe(revision);
  });

  test("what a guard sends back, once; then it passes with the doubt in the log", async () => {
    const { task, revision } = await ada.start("body");
    expect((await ada.propose(task, revision, { reply: "shout" })).text).toBe("OUTPUT_GUARD: do not shout");
    expect(await ada.propose(task, revision, { reply: "shout" })).toMatchObject({ isError: false });
    expect((await store().events(task)).map(({ kind }) => kind)).toContain("doubted");
  });

  test("unknown tasks, graphs, files as graphs, and what is too large", async () => {
    const text = async (name: string, args: object) => (await ada.call(name, args)).text;
    expect(await text("read_task", { task: "nobody" })).toMatch(/^UNKNOWN_TASK/);
    expect(await text("start_task", { graph: "nothing" })).toMatch(/^UNKNOWN_GRAPH/);
    expect(await text("start_task", { graph: "./letters.ts" })).toMatch(/^UNKNOWN_GRAPH/);
    expect(
      await text("propose_decision", { task: "x", revision: 0, decision: { reply: "x".repeat(140_000) } }),
    ).toMatch(/131072 bytes/);
    expect(await text("propose_decision", { task: "x", revision: -1, decision: {} })).toMatch(/Invalid|validation/i);
    expect(await text("read_task", { task: 7 })).toMatch(/Invalid|validation/i);
  });
});

test("a question is answered; a call that an agent's word would reach waits for a person", async () => {
  const { task, revision } = await ada.start("body");
  const asked = await ada.propose(task, revision, { ask: "How long?" });
  expect(asked.data).toMatchObject({
    brief: { status: "waiting_user", requests: [{ kind: "question", question: "How long?" }] },
  });
  expect((await ada.propose(task, asked.data.revision, { ask: "Again?" })).text).toMatch(/^TASK_WAITING/);
  const answered = await ada.call("answer_request", { task, answer: "short" });
  expect(answered.data).toMatchObject({ decisionIsDue: true, brief: { step: "body" } });
  const said = (await store().events(task)).find(({ kind }) => kind === "result");
  expect(said?.data.observation).toMatchObject({ kind: "answer", text: "short", untrusted: true });
  // What an agent says is text from outside: a privileged tool is a person's to approve, and no agent's.
  const waits = await ada.propose(task, answered.data.revision, { calls: [{ tool: "publish", args: {} }] });
  expect(waits.data).toMatchObject({ brief: { requests: [{ kind: "approval", tool: "publish" }] } });
  expect((await ada.call("answer_request", { task, answer: "approve" })).text).toMatch(/^INVALID_REPLY/);
  expect((await describeTask(store(), task)).waiting).toMatchObject([{ kind: "approval" }]);
});

test("of two proposals at once one is taken", async () => {
  const bob = await agent("bob");
  const { task, revision } = await ada.start("body");
  const decision = (text: string) => ({ calls: [{ tool: "write", args: { text: `${task} ${text}` } }] });
  const results = await Promise.all(
    [ada, bob].map((each, index) => each.propose(task, revision, decision(`${index}`))),
  );
  expect(results.filter(({ isError }) => !isError)).toHaveLength(1);
  expect(results.find(({ isError }) => isError)?.text).toMatch(/^(?:TASK_BUSY|STALE_WRITE)/);
  expect(effects().filter((line) => line.startsWith(task))).toHaveLength(1);
});

test("a client that is killed in the middle of a call leaves a task that another one can go on with", async () => {
  const carl = await agent("carl");
  const { task, revision } = await carl.start("body");
  writeFileSync(join(folder, "slow"), "");
  const lost = carl.propose(task, revision, { calls: [{ tool: "write", args: { text: `${task} slowly` } }] });
  const gone = expect(lost).rejects.toThrow(/closed/i);
  await until(() => existsSync(join(folder, "writing")));
  // Another process holds the task now.
  expect((await ada.call("continue_task", { task })).text).toMatch(/^TASK_BUSY/);
  process.kill(carl.transport.pid ?? 0, "SIGKILL");
  await gone;
  rmSync(join(folder, "slow"));
  // The call was begun and left no result: a person has to say whether it happened.
  const after = await ada.call("continue_task", { task });
  expect(after.data).toMatchObject({ brief: { requests: [{ kind: "unknown", tool: "write" }] } });
  expect(effects().filter((line) => line.startsWith(task))).toHaveLength(1);
});

test("nothing but the protocol is on its standard output, whatever graphs print, and it ends with its input", async () => {
  const server = spawn(process.execPath, [COMMAND, "mcp", "--db", database], { cwd: folder });
  onTestFinished(() => void server.kill("SIGKILL"));
  let [output, errors] = ["", ""];
  server.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  server.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  const client = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } };
  const start = { name: "start_task", arguments: { graph: "letters", message: "hello" } };
  for (const message of [
    { id: 1, method: "initialize", params: client },
    { method: "notifications/initialized" },
    { id: 2, method: "tools/call", params: start },
  ])
    server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  await until(() => output.includes('"id":2'));
  expect(errors).toContain("a graph that prints");
  const ids = output
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { id: number }).id);
  expect(ids).toEqual([1, 2]);
  server.stdin.end();
  expect(await once(server, "exit")).toEqual([0, null]);
});

test.concurrent.each([
  ["its client closes the input", ""],
  ["a message has no end", "x".repeat(4_100_000)],
])("the server ends when %s", async (_name, input) => {
  const server = spawn(process.execPath, [COMMAND, "mcp", "--db", database], { cwd: folder });
  const out: Buffer[] = [];
  server.stdout.on("data", (chunk: Buffer) => out.push(chunk));
  server.stdin.on("error", () => {});
  if (input === "") server.stdin.end();
  else server.stdin.write(input);
  const [code] = (await once(server, "exit")) as [number];
  expect([code, Buffer.concat(out).toString()]).toEqual([0, ""]);
});

test("the server ends when nobody reads its answers any more", async () => {
  const server = spawn(process.execPath, [COMMAND, "mcp", "--db", database], { cwd: folder });
  onTestFinished(() => void server.kill("SIGKILL"));
  let errors = "";
  server.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  server.stdin.on("error", () => {});
  const client = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } };
  const send = (message: object) => server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  send({ id: 1, method: "initialize", params: client });
  await once(server.stdout, "data");
  server.stdout.destroy();
  for (const id of [2, 3]) send({ id, method: "tools/list" });
  const [code] = (await once(server, "exit")) as [number];
  expect([code, errors]).toEqual([0, ""]);
});

test("an argument that a tool does not have is refused by name, and nothing is started", async () => {
  const someone = await agent("someone");
  const refused = await someone.call("start_task", { graph: "letters", message: "to Ada", name: "mine" });
  expect(refused).toMatchObject({ isError: true, text: expect.stringContaining("name") as string });
  expect((await someone.call("read_task", { task: "mine" })).isError).toBe(true);
});
