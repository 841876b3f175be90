import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { compile, defineTool, defineWorkflow, field, propose, sqliteStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { declareSecrets } from "../../src/internal/redact.ts";
import { TaskDesk } from "../../src/mcp/desk.ts";
import { mcpServer } from "../../src/mcp/server.ts";

const note = defineWorkflow({
  name: "note",
  version: 1,
  state: { text: field(z.string()) },
  initial: "write",
  steps: { write: { writes: ["text"], to: ["write", "done"] }, done: { requires: ["text"], final: true } },
});

const EMAIL = "ada@example.net";

/** What its tool gives back is nobody's business, nor is the address that code keeps of it. */
const letter = defineWorkflow({
  name: "letter",
  version: 1,
  state: { email: field(z.string()).sensitive("personal data"), text: field(z.string()) },
  tools: {
    lookUp: defineTool({
      description: "Looks up.",
      effect: "read",
      parameters: z.object({ mail: z.boolean() }),
      sensitive: { kinds: ["personal data"], of: ({ mail }) => (mail ? "personal data" : null) },
      run: ({ mail }) => (mail ? EMAIL : "a customer since 1999"),
      onResult: ({ value }) => (value === EMAIL ? { email: EMAIL } : {}),
    }),
  },
  initial: "write",
  steps: {
    write: { writes: ["text", "email"], tools: ["lookUp"], to: ["write", "done"] },
    done: { final: true },
  },
});

/** A client of a server in this process, whose store may do something before a look. */
async function open(script: readonly object[] = [], workflow: object = note) {
  const store = sqliteStore(":memory:");
  const graph = compile(workflow as typeof note, { model: scriptedModel([...script]), store });
  const meanwhile: (() => Promise<void>)[] = [];
  const watched = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      if (name !== "look") return member.bind(target) as unknown;
      return async (taskId: string) => {
        const found = await target.look(taskId);
        await meanwhile.shift()?.();
        return found;
      };
    },
  });
  const same = () => Promise.resolve(graph as never);
  const server = mcpServer(
    {
      store: watched,
      agent: "tester",
      signal: new AbortController().signal,
      graphOf: same,
      graphNamed: same,
      remember: () => Promise.resolve(),
    },
    "1.0.0",
  );
  const client = new Client({ name: "test", version: "1" });
  const [here, there] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(there), client.connect(here)]);
  onTestFinished(() => client.close());
  const call = (name: string, args: Record<string, unknown>) => client.callTool({ name, arguments: args });
  const start = async () => {
    const { structuredContent } = await call("start_task", { graph: "note", message: "go" });
    return (structuredContent as { brief: { taskId: string } }).brief.taskId;
  };
  return { graph, call, start, meanwhile };
}

test("the revision that is shown is never newer than the brief beside it", async () => {
  const { graph, call, start, meanwhile } = await open();
  const task = await start();
  const move = (revision: number) => async () =>
    propose(graph, task, { agent: "another", revision, decision: { patch: { text: `text ${revision}` } } });
  // It moves on between any two looks.
  meanwhile.push(...[0, 1, 2, 3, 4].map(move));
  const { structuredContent } = await call("read_task", { task });
  const { brief, revision } = structuredContent as { brief: { state: { text?: string } }; revision: number };
  const seen = brief.state.text === undefined || brief.state.text === null ? 0 : Number(brief.state.text.slice(5)) + 1;
  expect(revision).toBeLessThanOrEqual(seen);
  expect(await call("propose_decision", { task, revision, decision: { next: "done" } })).toMatchObject({
    isError: true,
    structuredContent: { error: { code: "STALE_WRITE" } },
  });
});

test("the list says of a task whose run failed that it has failed", async () => {
  const { graph, call } = await open();
  // Nothing is left in the script, so the model fails before anything is committed.
  await graph.invoke({ message: "go" }, { configurable: { thread_id: "t" } }).catch(() => null);
  const { brief } = (await call("read_task", { task: "t" })).structuredContent as { brief: object };
  expect(brief).toMatchObject({ status: "failed" });
  expect((await call("list_tasks", {})).structuredContent).toMatchObject({ tasks: [{ task: "t", status: "failed" }] });
});

test("a secret that an older state holds is in neither the text nor the data", async () => {
  const { graph, call, start } = await open();
  const task = await start();
  const value = "correct horse battery";
  await propose(graph, task, { agent: "a", revision: 0, decision: { patch: { text: `it is ${value}` } } });
  process.env.STATECARD_LATE = value;
  onTestFinished(() => void delete process.env.STATECARD_LATE);
  declareSecrets(["STATECARD_LATE"]);
  const shown = JSON.stringify(await call("read_task", { task }));
  expect(shown).toContain("it is [redacted]");
  expect(shown).not.toContain(value);
});

test("an agent is shown what a person has allowed agents to see, and cannot overwrite the rest", async () => {
  const { graph, call, start } = await open([], letter);
  const task = await start();
  const { store } = graph.runtime;
  const look = (mail: boolean) => ({ tool: "lookUp", args: { mail } });
  const decide = (revision: number, decision: object) => call("propose_decision", { task, revision, decision });
  const seen = await decide(0, { calls: [look(true), look(false)] });
  expect(JSON.stringify(seen)).not.toContain(EMAIL);
  expect(JSON.stringify(seen)).toContain("a customer since 1999");
  expect(JSON.stringify(seen)).toContain("statecard consent allow letter --to agents");
  const { state } = (await store.look(task)) ?? {};
  expect(state).toMatchObject({ email: EMAIL });
  const refused = await decide(2, { patch: { email: "[withheld: personal data]" } });
  expect(refused).toMatchObject({ isError: true, structuredContent: { error: { code: "INVALID_DECISION" } } });
  const row = { workflow: "letter", destination: "agents", kind: "personal data", isAllowed: true, by: "ada", at: 0 };
  await store.keepConsents(task, [row]);
  const allowed = await call("read_task", { task });
  expect(JSON.stringify(allowed)).toContain(EMAIL);
  expect(JSON.stringify(allowed)).not.toContain("statecard consent allow");
});

/** Pays with an approval, asks, and has a rule whose reason tells too much. */
const account = defineWorkflow({
  name: "account",
  version: 1,
  state: { email: field(z.string()).sensitive("personal data"), text: field(z.string()) },
  input: ["email"],
  checks: { "a text is no address": ({ text, email }) => (text === "it" ? `it is ${email}` : null) },
  tools: {
    pay: defineTool({
      description: "Pays.",
      effect: "write",
      approve: true,
      parameters: z.object({ to: z.object({ mail: z.string() }) }),
      run: () => "paid",
    }),
  },
  initial: "work",
  steps: { work: { writes: ["text"], tools: ["pay"], to: ["work", "done"] }, done: { final: true } },
});

/** Has an account worked on, which its own definition says nothing about. */
const bank = defineWorkflow({
  name: "bank",
  version: 1,
  state: {},
  initial: "handing",
  steps: {
    handing: { workflow: account, input: () => ({ email: EMAIL }), output: () => ({ next: "done" }), to: ["done"] },
    done: { final: true },
  },
});

const ask = { ask: `Is it ${EMAIL}?` };
const pay = { calls: [{ tool: "pay", args: { to: { mail: EMAIL } } }] };

test("what an agent may not see is in no list, open request or refusal", async () => {
  const { graph, call } = await open([ask, pay], account);
  const seen = async (name: string, args: object) => JSON.stringify(await call(name, { ...args }));
  for (const task of ["asks", "pays"])
    await graph.invoke({ email: EMAIL, message: "go" } as never, { configurable: { thread_id: task } });
  const listed = await seen("list_tasks", {});
  expect(listed).toContain('"waitsFor":"question"');
  expect(listed).toContain('"waitsFor":"approval"');
  const approval = await seen("read_task", { task: "pays" });
  expect(approval).toContain('"args":{"to":{"mail":"[withheld]"}}');
  const asking = await call("start_task", { graph: "account", fields: { email: EMAIL } });
  const task = (asking.structuredContent as { brief: { taskId: string } }).brief.taskId;
  const refused = await seen("propose_decision", { task, revision: 0, decision: { patch: { text: "it" } } });
  expect(refused).toContain("it is [withheld]");
  for (const text of [listed, approval, refused, await seen("read_task", { task: "asks" })])
    expect(text).not.toContain(EMAIL);
});

test("nor where a workflow within the task asks", async () => {
  const { graph, call } = await open([ask], bank);
  await graph.invoke({ message: "go" }, { configurable: { thread_id: "t" } });
  const brief = JSON.stringify(await call("read_task", { task: "t" }));
  expect(brief).toContain('"kind":"question","question":"[withheld]"');
  expect(brief).toContain("Not shown: personal data.");
  // A command about the workflow around it would allow nothing.
  expect(brief).toContain("statecard consent allow account --to agents");
  expect(brief).not.toContain("statecard consent allow bank");
  expect(brief).not.toContain(EMAIL);
  const listed = await call("list_tasks", {});
  expect(JSON.stringify(listed)).not.toContain(EMAIL);
  const { store } = graph.runtime;
  const row = { workflow: "account", destination: "agents", kind: "personal data", isAllowed: true, by: "ada", at: 0 };
  await store.keepConsents("t", [row]);
  expect(JSON.stringify(await call("list_tasks", {}))).toContain(EMAIL);
  expect(JSON.stringify(await call("read_task", { task: "t" }))).toContain(`Is it ${EMAIL}?`);
});

test("a task is started once under an id, and a list says where there are more", async () => {
  const { call } = await open([ask, ask, ask]);
  const started = await call("start_task", { graph: "note", message: "go", task: "mine" });
  expect(started.structuredContent).toMatchObject({ brief: { taskId: "mine" } });
  const again = await call("start_task", { graph: "note", message: "go", task: "mine" });
  expect(again.structuredContent).toMatchObject({ error: { code: "TASK_EXISTS" } });
  await call("start_task", { graph: "note", message: "go" });
  const listed = await call("list_tasks", { limit: 1 });
  expect(listed.structuredContent).toMatchObject({ tasks: [expect.anything()], more: true });
  expect((await call("list_tasks", { limit: 2 })).structuredContent).not.toHaveProperty("more");
});

test.each(["t/sub/2.0", "@acme/x", " "])("nobody starts a task that would be taken for another's: %s", async (task) => {
  const { graph, call } = await open([ask]);
  const refused = await call("start_task", { graph: "note", message: "go", task });
  expect(refused.isError).toBe(true);
  expect(await graph.runtime.store.tasks()).toEqual([]);
});

test("a task is judged by its own graph, though another has a workflow of the same name", async () => {
  const open = { ...account, state: { ...account.state, email: field(z.string()) } };
  const store = sqliteStore(":memory:");
  const compiled = (workflow: object) => compile(workflow as typeof account, { store, model: scriptedModel([ask]) });
  const graphs: Record<string, ReturnType<typeof compiled>> = {
    open: compiled(defineWorkflow(open as never)),
    hiding: compiled(account),
  };
  for (const [task, graph] of Object.entries(graphs))
    await graph.invoke({ email: EMAIL, message: "go" } as never, { configurable: { thread_id: task } });
  const graphOf = (task: string) => Promise.resolve(graphs[task] as never);
  const desk = new TaskDesk({
    store,
    graphOf,
    graphNamed: graphOf,
    remember: () => Promise.resolve(),
    signal: new AbortController().signal,
    clientName: () => "test",
  });
  const { text } = await desk.list();
  expect(text).toMatch(/^hiding .*question$/m);
  expect(text).toMatch(new RegExp(`^open .*question: .*${EMAIL}`, "m"));
});
