import { describe, expect, test } from "vitest";
import {
  errorOf,
  expectRefusal,
  jsonOf,
  ownDatabase,
  projectFolder,
  shareOneProcess,
  statecard,
} from "../support/cli.ts";

shareOneProcess();

const COMMANDS = ["run", "resume", "show", "history", "tasks", "preview", "graph"];

describe("help", () => {
  test("lists every command, the exit codes and the environment variables", async () => {
    const { code, stdout, stderr } = await statecard(["--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const command of COMMANDS) expect(stdout).toMatch(new RegExp(`^  ${command} `, "m"));
    for (const word of ["0 finished", "10 waiting", "1 the task failed", "2 usage", "3 refused", "STATECARD_DB"])
      expect(stdout).toContain(word);
    expect(stdout).toContain("langgraph.json");
  });

  test.each(COMMANDS)("of %s tells what it takes and explains each option", async (command) => {
    const { code, stdout, stderr } = await statecard([command, "--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain(`Usage: statecard ${command}`);
    if (command !== "tasks") expect(stdout).toMatch(/<(?:graph|task|graph\|task)>|GRAPH|TASK/);
    for (const option of ["--db", "--json"]) expect(stdout).toMatch(new RegExp(`${option}.*\\S{3,}`));
    for (const line of stdout.split("\n").filter((each) => each.startsWith("  -")))
      expect(line).toMatch(/^ {2}(?:-\w, )?--[\w-]+(?: <\S+>)? {2,}\S/);
  });

  test.each(["run", "resume"])("of %s shows an example", async (command) => {
    expect((await statecard([command, "--help"])).stdout).toContain(`Example: statecard ${command} `);
  });

  test("--version prints the version alone", async () => {
    const { code, stdout } = await statecard(["--version"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\S*\n$/);
  });
});

describe("a wrong command line ends with 2, says what is wrong, and points to the help", () => {
  const cases: readonly (readonly [what: string, args: readonly string[], says: RegExp])[] = [
    ["an unknown command", ["frobnicate"], /unknown command 'frobnicate'/],
    ["a misspelt command", ["resum", "t-1"], /unknown command 'resum'/],
    ["a missing graph", ["run"], /missing required argument 'graph'/],
    ["a missing task", ["resume"], /missing required argument 'task'/],
    ["a missing task to show", ["show"], /missing required argument 'task'/],
    ["an unknown option", ["tasks", "--nonsense"], /unknown option '--nonsense'/],
    ["an option without its value", ["run", "ticket", "--message"], /'--message <text>' argument missing/],
    ["an argument too many", ["show", "a", "b"], /too many arguments/],
  ];
  test.each(cases)("%s", async (_what, args, says) => {
    const [forPeople] = await expectRefusal(args, { code: "USAGE", exit: 2, says });
    expect(forPeople?.stderr).toContain("--help");
  });

  test("no command at all shows the help", async () => {
    const { code, stdout, stderr } = await statecard([]);
    expect(code).toBe(2);
    expect(`${stdout}${stderr}`).toContain("Usage: statecard");
  });

  test("--request without --answer", async () => {
    const own = await ownDatabase();
    await statecard(["run", "ticket", "--task", "t-1"], own);
    await expectRefusal(["resume", "t-1", "--request", "q2.0"], { code: "USAGE", exit: 2, says: /--answer/ }, own);
  });

  test.each([
    ["run", "ticket"],
    ["resume", "t-1"],
  ])("%s with both --chat and --json", async (...args) => {
    const own = await ownDatabase();
    await statecard(["run", "ticket", "--task", "t-1"], own);
    const both = await statecard([...args, "--chat", "--json"], own);
    expect(errorOf(both)).toMatchObject({
      code: "USAGE",
      message: expect.stringContaining("choose one"),
    });
    expect(both.code).toBe(2);
  });
});

describe("graph", () => {
  test("prints the table, as text, JSON and Mermaid", async () => {
    const own = await ownDatabase();
    const text = await statecard(["graph", "ticket"], own);
    expect(text.code).toBe(0);
    expect(text.stdout).toMatch(/resolving .*-> done .*needs solution/);
    const json = await statecard(["graph", "ticket", "--json"], own);
    const { steps } = jsonOf(json) as { steps: { name: string; to: string[] }[] };
    expect(Object.fromEntries(steps.map(({ name, to }) => [name, to]))).toEqual({
      init: ["gathering_info", "deciding"],
      gathering_info: ["gathering_info", "deciding"],
      deciding: ["resolving", "done"],
      resolving: ["done"],
      done: [],
    });
    const mermaid = await statecard(["graph", "ticket", "--mermaid"], own);
    expect(mermaid.stdout).toMatch(/^stateDiagram-v2\n/);
    expect(mermaid.stdout).toContain("resolving --> done");
  });

  test("shows conditions, approvals and deadlines", async () => {
    const folder = await projectFolder({
      "claim.mjs": `
import { compile, defineTool, defineWorkflow, field } from "statecard";
import { z } from "zod";
const tool = (approve) => defineTool({ description: "d", effect: "write", parameters: z.object({}), approve, run: () => 1 });
export const graph = compile(defineWorkflow({
  name: "claim", version: 1, state: { paid: field(z.string()) }, initial: "judging",
  tools: { pay: tool(true), note: tool(), lend: tool(() => false), look: tool() },
  steps: {
    judging: {
      to: ["late", { to: "paying", when: () => false, because: "only what is proven: invoices" }],
      deadline: { afterMs: 172_800_000, to: "late" },
    },
    paying: { to: ["late"], writes: ["paid"], tools: ["pay", "note", "lend", "look"], approve: ["note"] },
    late: { final: true },
  },
}));`,
    });
    const text = await statecard(["graph", "claim.mjs"], { folder });
    expect(text.stdout.split("\n").slice(1, 3)).toEqual([
      "  judging (model) -> late | paying (may be closed: only what is proven: invoices)   unanswered after 2 days -> late",
      "  paying (model) -> late   writes paid   needs approval for pay, note   may need approval for lend",
    ]);
    const { steps } = jsonOf(await statecard(["graph", "claim.mjs", "--json"], { folder })) as { steps: unknown };
    expect(steps).toMatchObject([
      {
        to: ["late", "paying"],
        moves: [{ to: "late" }, { to: "paying", because: "only what is proven: invoices" }],
        approvals: [],
        deadline: { afterMs: 172_800_000, to: "late" },
      },
      {
        approvals: [
          { tool: "pay", always: true },
          { tool: "note", always: true },
          { tool: "lend", always: false },
        ],
      },
      {},
    ]);
    const mermaid = await statecard(["graph", "claim.mjs", "--mermaid"], { folder });
    // A colon or a semicolon would end a label.
    expect(mermaid.stdout.split("\n").slice(2, 7)).toEqual([
      "  judging --> late",
      "  judging --> paying: may be closed - only what is proven - invoices",
      "  judging --> late: unanswered after 2 days",
      "  paying --> late",
      "  note right of paying: needs approval for pay, note, may need approval for lend",
    ]);
  });
});

describe("tasks", () => {
  test("of a new database is an empty list that says how to start one", async () => {
    const own = await ownDatabase();
    const text = await statecard(["tasks"], own);
    expect(text).toMatchObject({ code: 0, stderr: "" });
    expect(text.stdout).toContain("statecard run");
    expect(jsonOf(await statecard(["tasks", "--json"], own))).toEqual({ tasks: [] });
  });
});
