import { writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  eventsOf,
  jsonOf,
  ownDatabase,
  PROJECT,
  projectFolder,
  shareOneProcess,
  statecard,
  temporaryFolder,
} from "../support/cli.ts";
import { decision, startOpenAIServer } from "../support/openai-server.ts";

shareOneProcess();

const GRAPH = join(PROJECT, "graphs/code-review/graph.ts");
const LINE = "try { go(); } catch {}";

/** A folder to review, and a model that is reached by an address which is not this machine's own. */
async function review(...script: object[]) {
  const own = await ownDatabase();
  const folder = await temporaryFolder();
  await writeFile(join(folder, "a.js"), `${LINE}\n`);
  const server = await startOpenAIServer(script.map((one) => decision(one)));
  onTestFinished(() => server.close());
  const elsewhere = server.baseURL.replace("127.0.0.1", "0.0.0.0");
  const environment = { ...own.environment, OPENAI_API_KEY: "none-of-yours", OPENAI_BASE_URL: elsewhere };
  const set = ["--set", "directory=.", "--set", "focus=errors"];
  return { server, set, host: new URL(elsewhere).host, options: { environment, folder } };
}

const READ = { calls: [{ tool: "readFile", args: { path: "a.js" } }] };

test("code goes to a model elsewhere when somebody has allowed it, and not before", async () => {
  const { server, set, host, options } = await review({ next: "listing" }, READ, { next: "reporting" });
  const run = (...words: string[]) => statecard(words, options);
  const preview = await run("preview", GRAPH);
  const question = `May this go to gpt-5-mini at ${host}, for all tasks of code-review: code (fields `;
  expect(preview.stdout).toContain(`asks first: ${question}`);

  const asked = await run("run", GRAPH, "--task", "r", ...set);
  expect(asked).toMatchObject({ code: 10, stderr: "" });
  expect(asked.stdout).toContain(question);
  expect(asked.stdout).toMatch(/; results of \w+, \w+.*\?/);
  expect(asked.stdout).toContain("npx statecard resume r --approve");
  expect((await run("approvals")).stdout).toContain("May this go to");
  expect(server.requests).toEqual([]);

  const refused = await run("resume", "r", "--reject", "not outside");
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain(
    `CONSENT_WITHHELD: code may not go to ${host}, and code-review cannot do its work without`,
  );
  expect(server.requests).toEqual([]);
  expect(await run("consent", "list")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`code-review  code  to ${host}: withheld  by ${userInfo().username}`),
  });

  const allowed = await run("consent", "allow", GRAPH, "code", "--json");
  expect(jsonOf(allowed)).toMatchObject({ consents: [{ workflow: "code-review", kind: "code", destination: host }] });
  const done = await run("resume", "r");
  expect(done).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.stringify(server.requests)).toContain("go(); }");
  const told = eventsOf(await run("history", "r", "--json")).filter(({ kind }) => kind === "consent");
  expect(told.at(-1)?.data.decision).toMatchObject({ withheld: ["code"], by: userInfo().username });
  expect((await run("history", "r")).stdout).toContain(`to ${host} may go: nothing; withheld: code`);

  expect((await run("consent", "withdraw", GRAPH)).stdout).toContain("asked again");
  const again = await run("run", GRAPH, ...set);
  expect(again.code).toBe(10);
});

test("says what is wrong with a command", async () => {
  const options = await ownDatabase();
  const error = async (...words: string[]) => (await statecard(["consent", ...words], options)).stderr;
  expect(await error("allow")).toContain("consent allow needs a graph");
  expect(await error("list", "ticket")).toContain("consent list takes no graph");
  expect(await error("allow", "ticket")).toContain("ticket declares nothing as sensitive");
  expect(await error("allow", GRAPH, "codes")).toContain('declares no "codes"; it has: code');
  expect(await error("allow", GRAPH)).toContain("run on this machine, so nothing leaves it");
  expect(await error("allow", GRAPH, "--to", "")).toContain("--to names a host, or agents");
  expect(await error("list", "--tenant", "Acme/")).toContain("a tenant's name has");
  expect(await error("withdraw", GRAPH, "--tenant", "Acme/")).toContain("a tenant's name has");
  expect((await statecard(["consent", "list"], options)).stdout).toBe("Nothing has been decided yet.\n");
});

const DESK = `
import { compile, defineWorkflow, field } from "statecard";
import { scriptedModel } from "statecard/testing";
import { z } from "zod";

const child = defineWorkflow({
  name: "child", version: 1, input: ["email"], sensitive: { needed: ["personal data"] },
  state: { email: field(z.string()).sensitive("personal data") },
  initial: "a", steps: { a: { to: ["b"] }, b: { final: true } },
});
const parent = defineWorkflow({
  name: "parent", version: 1, state: {}, initial: "handing",
  steps: {
    handing: { workflow: child, input: () => ({ email: "ada@example.net" }), output: () => ({ next: "done" }), to: ["done"] },
    done: { final: true },
  },
});
const script = [{ next: "b" }, { next: "b" }];
const elsewhere = { isLocal: false, clientConfig: { baseURL: "https://models.example/v1" } };
export const graph = compile(parent, { model: Object.assign(scriptedModel(script), elsewhere) });
`;

test("a workflow within another is named as the list and the refusal name it", async () => {
  const config = JSON.stringify({ graphs: { desk: "./graph.mjs:graph" } });
  const folder = await projectFolder({ "graph.mjs": DESK, "langgraph.json": config });
  const run = (...words: string[]) => statecard(words, { folder });
  const asked = await run("run", "desk", "--task", "a");
  expect(asked.stdout).toContain(", for all tasks of child: personal data (field email)?");
  // There is nothing to leave out.
  expect(asked.stdout).not.toContain("Or change with");
  expect((await run("run", "desk", "--task", "b")).code).toBe(10);
  const refused = await run("resume", "a", "--reject", "no");
  expect(refused.stderr).toContain("allow it (statecard consent allow child)");
  const listed = (await run("tasks")).stdout;
  expect(listed).toMatch(/^b .*running at handing/m);
  expect(listed).not.toContain("waiting");

  const agents = await run("consent", "withhold", "child", "--to", "agents");
  expect(agents).toMatchObject({ stderr: "", stdout: expect.stringContaining("from agents that come by MCP.") });
  expect((await run("consent", "list")).stdout).toContain("to agents that come by MCP: withheld");
  const elsewhere = await run("consent", "withhold", "child", "--to", "gpt");
  expect(elsewhere).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('no model of child runs on a host "gpt"'),
  });
  const allowed = await run("consent", "allow", "child");
  expect(allowed).toMatchObject({ code: 0, stderr: "", stdout: "personal data of child may go to models.example.\n" });
  for (const task of ["a", "b"]) expect((await run("resume", task)).code).toBe(0);

  expect((await run("consent", "withdraw", "child", "nothing")).stderr).toContain('child declares no "nothing"');
  expect((await run("consent", "withdraw", "child", "personal data")).stdout).toContain("Withdrawn.");
  expect((await run("consent", "allow", "children")).stderr).toContain("UNKNOWN_GRAPH");
});

test("of several kinds, those to be allowed are what can be changed", async () => {
  const two = DESK.replace("state: { email:", 'state: { phone: field(z.string()).sensitive("phones"), email:')
    .replace('input: ["email"]', 'input: ["email", "phone"]')
    .replace('needed: ["personal data"]', "needed: []");
  const folder = await projectFolder({ "graph.mjs": two });
  const run = (...words: string[]) => statecard(words, { folder });
  const asked = await run("run", "graph.mjs", "--task", "a");
  expect(asked.stdout).toContain(`--edit '{"kinds":["personal data","phones"]}'`);
  expect((await run("resume", "a", "--edit", '{"kinds":["phones"]}')).code).toBe(0);
  // Without a goal, the table's head is the name.
  expect((await run("graph", "graph.mjs")).stdout).toMatch(/^parent v1\n/);
});
