import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { eventsOf, jsonOf, ownDatabase, PROJECT, shareOneProcess, statecard } from "../support/cli.ts";
import { decision, startOpenAIServer } from "../support/openai-server.ts";

shareOneProcess();

const GRAPH = join(PROJECT, "graphs/code-review/graph.ts");
const LINE = "try { go(); } catch {}";

/** A folder to review, and a model that is reached by an address which is not this machine's own. */
async function review(...script: object[]) {
  const own = await ownDatabase();
  const folder = await mkdtemp(join(tmpdir(), "statecard-consent-"));
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
  expect(preview.stdout).toContain(`asks first: May this go to gpt-5-mini at ${host}: code (field source, results of `);

  const asked = await run("run", GRAPH, "--task", "r", ...set);
  expect(asked).toMatchObject({ code: 10, stderr: "" });
  expect(asked.stdout).toContain(`May this go to gpt-5-mini at ${host}: code (`);
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
  const { options } = await ownDatabase().then(({ environment }) => ({ options: { environment } }));
  const error = async (...words: string[]) => (await statecard(["consent", ...words], options)).stderr;
  expect(await error("allow")).toContain("consent allow needs a graph");
  expect(await error("list", "ticket")).toContain("consent list takes no graph");
  expect(await error("allow", "ticket")).toContain("ticket declares nothing as sensitive");
  expect(await error("allow", GRAPH, "codes")).toContain('declares no "codes"; it has: code');
  expect(await error("allow", GRAPH)).toContain("run on this machine, so nothing leaves it");
  expect((await statecard(["consent", "list"], options)).stdout).toBe("Nobody has been asked yet.\n");
});
