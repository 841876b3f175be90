import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { answer, briefTask, sqliteStore, type CallResult, type WorkflowGraph } from "statecard";
import { expect, test } from "vitest";
import { z } from "zod";
import { reviewRules } from "../../graphs/code-review/rules.ts";
import { codeReview, reviewView } from "../../graphs/code-review/workflow.ts";
import { refactorRules } from "../../graphs/refactor/rules.ts";
import { refactor, refactorView } from "../../graphs/refactor/workflow.ts";
import { compileAny } from "../../src/compile/compile.ts";
import type { State } from "../../src/state/fields.ts";
import { renderBrief } from "../../src/view/brief.ts";
import { anyWorkflow, type AnyWorkflow } from "../../src/workflow/define.ts";
import { bundled, emptyFolder, filesIn } from "../support/refactor.ts";

const config = { configurable: { thread_id: "t" } };

type Keeper = (result: CallResult, state: State) => Readonly<Record<string, unknown>>;

/** A workflow that tells in which fields it keeps something of sensitive results. */
function watched(workflow: AnyWorkflow): { readonly workflow: AnyWorkflow; readonly kept: Set<string> } {
  const kept = new Set<string>();
  const watch =
    (keep: Keeper): Keeper =>
    (result, state) => {
      const patch = keep(result, state);
      for (const name of Object.keys(patch)) kept.add(name);
      return patch;
    };
  const isSensitive = (tool: string) => workflow.tools[tool]?.sensitive !== undefined;
  const onResult = Object.entries(workflow.onResult).map(([tool, keep]) => [
    tool,
    keep && isSensitive(tool) ? watch(keep as Keeper) : keep,
  ]);
  const tools = Object.entries(workflow.tools).map(([name, tool]) => [
    name,
    tool.onResult && isSensitive(name) ? { ...tool, onResult: watch(tool.onResult) } : tool,
  ]);
  return {
    workflow: { ...workflow, onResult: Object.fromEntries(onResult), tools: Object.fromEntries(tools) },
    kept,
  };
}

/** The fields among some that are of no kind, though they can hold more than numbers and fixed choices. */
function withoutKind(workflow: AnyWorkflow, names: Iterable<string>): readonly string[] {
  return [...names].filter((name) => {
    const field = workflow.state[name];
    if (!field || field.rules.sensitive !== undefined) return false;
    const { type, enum: choices } = z.toJSONSchema(field.schema, { unrepresentable: "any" });
    return choices === undefined && !["integer", "number", "boolean"].some((fixed) => fixed === type);
  });
}

/** What an agent is shown of a task where it may not see code. */
async function shownWithoutCode({ runtime }: WorkflowGraph): Promise<string> {
  const brief = await briefTask(runtime.store, "t", runtime.workflow, { withheld: ["code"], latestTokens: 10_000 });
  return renderBrief(brief);
}

/** The lines of a folder's files that say something. */
function linesIn(folder: string): readonly string[] {
  const lines = Object.values(filesIn(folder)).flatMap((text) => text.split("\n"));
  return lines.map((line) => line.trim()).filter((line) => line.length > 12);
}

test("a review keeps source only where it is declared as code", async () => {
  const folder = emptyFolder();
  mkdirSync(join(folder, "shop"));
  writeFileSync(join(folder, "shop/orders.ts"), "export function sold(id) {\n  return eval(id + salaryOf(4711));\n}\n");
  const { workflow, kept } = watched(anyWorkflow(codeReview));
  const clients = { reviewFolders: [folder] };
  const graph = compileAny(workflow, {
    model: reviewRules(),
    view: reviewView,
    store: sqliteStore(":memory:"),
    clients,
  });
  const done = await graph.invoke({ directory: "shop", focus: "security" } as object, config);
  expect(done.execution.status).toBe("completed");
  expect(JSON.stringify(done)).toContain("return eval(id + salaryOf(4711));");
  expect([...kept].toSorted()).toEqual(["file", "files", "from", "goOnFrom", "resources", "source"]);
  expect(withoutKind(workflow, kept)).toEqual([]);
  const shown = await shownWithoutCode(graph);
  for (const text of [...linesIn(folder), "orders.ts"]) expect(shown).not.toContain(text);
});

test("a refactoring keeps source, and what tests print, only where it is declared as code", async () => {
  const { folder, message } = bundled("shop");
  writeFileSync(join(folder, "test/broken.test.js"), 'throw new Error("the salary of Ada is 4711");\n');
  const { workflow, kept } = watched(anyWorkflow(refactor));
  const clients = { folders: [folder] };
  const graph = compileAny(workflow, {
    model: refactorRules(),
    view: refactorView,
    store: sqliteStore(":memory:"),
    clients,
  });
  const asked = await graph.invoke({ message, project: folder } as object, config);
  const failed = await graph.invoke(answer(asked, "yes"), config);
  expect(failed).toMatchObject({ tests: "failed", signature: 'function formatPrice(price, kind = "other")' });
  expect(JSON.stringify(failed)).toContain("broken.test.js");
  const before = await shownWithoutCode(graph);
  appendFileSync(join(folder, "src/labels.js"), "// by somebody else\n");
  await graph.invoke(answer(failed, "again"), config);
  expect([...kept].toSorted()).toEqual([
    "changedOutside",
    "focus",
    "lastError",
    "nextAction",
    "plan",
    "resources",
    "tests",
  ]);
  expect(withoutKind(workflow, kept)).toEqual([]);
  const shown = before + (await shownWithoutCode(graph));
  for (const text of [...linesIn(folder), "kind = ", "labels.js", "broken.test.js"]) expect(shown).not.toContain(text);
});
