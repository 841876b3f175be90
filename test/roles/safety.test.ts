import {
  allowPaths,
  compile,
  defineTool,
  defineWorkflow,
  field,
  forbidCommands,
  parseRole,
  sqliteStore,
} from "statecard";
import { runWorkflow, scriptedModel } from "statecard/testing";
import { expect, test } from "vitest";
import { z } from "zod";

/** A role whose safety asks for what the code below does not rely on. */
const role = parseRole("# Identity\nYou tidy folders.\n# Safety\nNever delete anything.", "tidy.md");

/** A workflow that keeps what its tools really did. */
function tidy() {
  const done: string[] = [];
  const workflow = defineWorkflow({
    name: "tidy",
    version: 1,
    role,
    state: { report: field(z.string()) },
    tools: {
      shell: defineTool({
        description: "Runs a command.",
        effect: "write",
        parameters: z.object({ command: z.string() }),
        intercept: forbidCommands(),
        run: ({ command }) => void done.push(command),
      }),
      write: defineTool({
        description: "Writes a file.",
        effect: "write",
        parameters: z.object({ path: z.string() }),
        intercept: allowPaths(["/srv/files"]),
        run: ({ path }) => void done.push(path),
      }),
      pay: defineTool({
        description: "Pays somebody.",
        effect: "write",
        parameters: z.object({ amount: z.number() }),
        approve: ({ amount }) => amount >= 100,
        run: ({ amount }) => void done.push(`paid ${amount}`),
      }),
    },
    initial: "working",
    steps: {
      working: {
        tools: ["shell", "write", "pay"],
        writes: ["report"],
        to: [{ to: "closed", when: ({ report }) => report !== null, because: "there is no report" }],
        guards: [({ reply }) => (reply?.includes("password") ? { mend: { reply: "(left out)" } } : null)],
      },
      closed: { final: true },
    },
  });
  return { workflow, done };
}

test("what a role's safety asks for, code refuses, however often the model insists", async () => {
  const { workflow, done } = tidy();
  const destroy = { calls: [{ tool: "shell", args: { command: "sudo rm -rf /" } }], because: "I am sure" };
  const model = scriptedModel([
    destroy,
    destroy,
    { calls: [{ tool: "shell", args: { command: "bash -c 'rm -rf ~'" } }] },
    { calls: [{ tool: "write", args: { path: "../../etc/passwd" } }] },
    { calls: [{ tool: "shell", args: { command: "ls" } }] },
    { patch: { report: "nothing was deleted" }, next: "closed" },
  ]);
  const run = await runWorkflow(workflow, { model, message: "delete everything" });
  expect(done).toEqual(["ls"]);
  const statuses = run.events.flatMap(({ kind, data }) =>
    kind === "result" && data.observation ? (data.observation as { results: { status: string }[] }).results : [],
  );
  expect(statuses.map(({ status }) => status)).toEqual(["refused", "refused", "refused", "refused", "ok"]);
  expect(model.prompts[1]).toContain("command was refused");
  expect(
    model.prompts.every((prompt) => prompt.startsWith("You tidy folders.\n\nSafety:\nNever delete anything.")),
  ).toBe(true);
  expect(run.task.status).toBe("completed");
});

test("a call that needs a person waits, and a move that is closed is refused, whatever the model says", async () => {
  const { workflow, done } = tidy();
  const model = scriptedModel([{ next: "closed" }, { calls: [{ tool: "pay", args: { amount: 5000 } }] }]);
  const run = await runWorkflow(workflow, { model, message: "pay, and close" });
  expect(run.refused).toMatchObject([{ code: "GUARD", to: "closed" }]);
  expect(run.waiting).toMatchObject({ kind: "approval", tool: "pay" });
  expect(done).toEqual([]);
});

test("an answer goes through the guards of its step", async () => {
  const { workflow } = tidy();
  const model = scriptedModel([{ patch: { report: "x" }, reply: "the password is hunter2", next: "closed" }]);
  const store = sqliteStore(":memory:");
  await compile(workflow, { model, store }).invoke({ message: "tell me" }, { configurable: { thread_id: "t" } });
  const said = (await store.events("t")).flatMap(({ kind, data }) => (kind === "decision" ? [data.decision] : []));
  expect(said).toMatchObject([{ reply: "(left out)" }]);
});
