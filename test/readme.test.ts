import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { answer, defineWorkflow, field, type WorkflowGraph } from "statecard";
import { runWorkflow, scriptedModel } from "statecard/testing";
import { z } from "zod";
import { exitCodeOf } from "../src/cli/exit.ts";
import { WorkflowError, type ErrorCode } from "../src/errors.ts";
import { ticket } from "../graphs/ticket/workflow.ts";
import { mermaidOf } from "../src/cli/graph.ts";
import { anyWorkflow } from "../src/workflow/define.ts";

const readme = readFileSync("README.md", "utf8");
const blocks = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1] ?? "");

describe("README", () => {
  test.skipIf(!existsSync("dist/cli/main.js"))(
    "its first workflow is a graph that the command line loads (needs npm run build)",
    () => {
      const folder = mkdtempSync(join(tmpdir(), "statecard-readme-"));
      try {
        writeFileSync(join(folder, "order.ts"), blocks[0] ?? "");
        writeFileSync(join(folder, "package.json"), '{"type":"module"}');
        mkdirSync(join(folder, "node_modules"));
        symlinkSync(resolve("."), join(folder, "node_modules", "statecard"));
        symlinkSync(resolve("node_modules/zod"), join(folder, "node_modules", "zod"));
        const run = (...args: string[]) =>
          execFileSync("node", [resolve("dist/cli/main.js"), ...args], {
            cwd: folder,
            encoding: "utf8",
            env: { ...process.env, OPENAI_API_KEY: "" },
          });
        expect(run("graph", "order.ts")).toContain("pricing (code) -> served   needs drink, name");
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );

  test("its test of the workflow passes", async () => {
    const order = defineWorkflow({
      name: "order",
      version: 1,
      state: { drink: field(z.enum(["espresso", "latte"])), name: field(z.string()).writeOnce() },
      initial: "asking",
      steps: {
        asking: { writes: ["drink", "name"], to: ["asking", "pricing"] },
        pricing: { requires: ["drink", "name"], to: ["served"], run: () => ({ next: "served" }) },
        served: { final: true },
      },
    });
    const model = scriptedModel([
      { patch: { drink: "latte" }, next: "pricing" },
      { patch: { drink: "latte" }, ask: "Which name?" },
    ]);
    const run = await runWorkflow(order, { model, message: "a latte please" });
    expect(run.refused).toMatchObject([{ code: "REQUIRES", to: "pricing", fields: ["name"] }]);
    expect(run.waiting?.question).toBe("Which name?");
  });

  test("every error code that it names exists", () => {
    const named = [...readme.matchAll(/`([A-Z]+(?:_[A-Z]+)+)`/g)]
      .map((match) => match[1] ?? "")
      .filter((name) => !name.startsWith("OPENAI"));
    expect(named.length).toBeGreaterThan(15);
    for (const code of named) expect(new WorkflowError(code as ErrorCode, "x").status, code).toBeGreaterThan(0);
  });

  test("its exit codes are those of the command line", () => {
    const codes: readonly [ErrorCode, number][] = [
      ["TASK_FINISHED", 3],
      ["TASK_BUSY", 3],
      ["STALE_RESUME", 3],
      ["UNKNOWN_TASK", 3],
      ["USAGE", 2],
      ["MODEL_FAILED", 1],
    ];
    for (const [code, exit] of codes) expect(exitCodeOf(new WorkflowError(code, "x")), code).toBe(exit);
  });

  test("the chain of docs/chains.md runs, and comes to what the page shows", async () => {
    const page = readFileSync("docs/chains.md", "utf8");
    const folder = mkdtempSync(join(tmpdir(), "statecard-chain-"));
    try {
      const [, code = ""] = /```ts\n([\s\S]*?)```/.exec(page) ?? [];
      const file = join(folder, "letter.ts");
      writeFileSync(file, code.replace("openStore()", 'openStore(":memory:")'));
      const { graph } = (await import(file)) as { graph: WorkflowGraph };
      const config = { configurable: { thread_id: "letter-1" } };
      const brief = { customer: "Ada", matter: "the late parcel" };
      const paused = await graph.invoke({ brief } as never, config);
      expect(paused).toMatchObject({ points: [expect.anything(), expect.anything()], execution: { step: "drafting" } });
      const done = await graph.invoke(answer(paused, "Bob"), config);
      for (const shown of [JSON.stringify(brief), JSON.stringify(done.points), String(done.text)])
        expect(page).toContain(shown);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("the ticket example's picture is its table", () => {
    expect(readFileSync("graphs/ticket/README.md", "utf8")).toContain(mermaidOf(anyWorkflow(ticket)));
  });
});
