import { readFileSync } from "node:fs";
import { runWorkflow, scriptedModel } from "statecard/testing";
import { expect, test } from "vitest";
import { serviceDesk } from "../../graphs/service-desk/workflow.ts";
import { countTokens } from "../../src/internal/tokens.ts";
import { TECHNIQUES, type StatusBarOptions } from "../../src/view/status-bar/input.ts";

const chapter = readFileSync("docs/status-bar.md", "utf8");
const START = Date.UTC(2026, 2, 1, 10, 0);
const MINUTE = 60_000;

const wrong = { calls: [{ tool: "callProvider", args: { customer: "1002", number: "0800 555 999" } }] };
const todos = [{ text: "find the number", status: "completed" }, { text: "call" }, { text: "have it confirmed" }];
const prepare = [
  { tool: "findNumber", args: { customer: "1002" } },
  { tool: "writeTodos", args: { todos } },
];

/** What the model is told after two calls to a wrong number, five minutes between any two decisions. */
async function toldWith(statusBar: StatusBarOptions): Promise<{ facts: string; status: string }> {
  const time = { now: START };
  const script = [{ next: "preparing" }, { calls: prepare }, { next: "calling" }, wrong, wrong, { ask: "Go on?" }];
  const model = scriptedModel(
    script.map((decision) => () => {
      time.now += 5 * MINUTE;
      return decision;
    }),
  );
  const clock = { now: () => time.now };
  await runWorkflow(serviceDesk, { model, input: { customer: "1002" }, clock, view: { policy: "state", statusBar } });
  const block = (tag: string) =>
    new RegExp(`<${tag}>\\n[\\s\\S]*?\\n</${tag}>`).exec(model.prompts.at(-1) ?? "")?.[0] ?? "";
  return { facts: block("facts"), status: block("status") };
}

test("docs/status-bar.md shows what the model is really told", async () => {
  const { facts, status } = await toldWith({ timestamps: true });
  expect(chapter).toContain(facts);
  expect(chapter).toContain(status);
});

test("docs/status-bar.md counts the tokens as they are, with and without each technique", async () => {
  const tokensWith = async (options: StatusBarOptions) => {
    const { facts, status } = await toldWith({ timestamps: true, ...options });
    return countTokens(facts) + countTokens(status);
  };
  const off = Object.fromEntries(TECHNIQUES.map((technique) => [technique, false]));
  const rows: (readonly [string, number])[] = [
    ["all five", await tokensWith({})],
    ["none", await tokensWith(off)],
  ];
  for (const technique of TECHNIQUES) rows.push([`without \`${technique}\``, await tokensWith({ [technique]: false })]);
  for (const [name, tokens] of rows) expect(chapter).toMatch(new RegExp(`\\| ${name} +\\| +${tokens} +\\|`));
});
