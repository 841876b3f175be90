import type { BaseMessage } from "@langchain/core/messages";
import { answer, compile, sqliteStore, type ViewOptions } from "statecard";
import { describe, expect, test } from "vitest";
import { OfflineRules } from "../../graphs/offline-rules.ts";
import { decideServiceDesk } from "../../graphs/service-desk/rules.ts";
import { serviceDesk } from "../../graphs/service-desk/workflow.ts";
import { switchesOf, techniqueTable } from "../../src/cli/techniques.ts";
import { previews, type Previews } from "../../src/compile/turns.ts";
import { TECHNIQUES } from "../../src/view/status-bar/input.ts";
import type { Switches } from "../../src/view/status-bar/preview.ts";

const START = Date.UTC(2026, 2, 1, 10, 0);
const CONFIG = { configurable: { thread_id: "t" } };
const NONE: Switches = { on: [], off: [] };

/** A task that waits for another customer number, and the prompts that its model is sent. */
async function waitingTask(statusBar: ViewOptions["statusBar"] = {}) {
  const sent: string[] = [];
  class Recording extends OfflineRules {
    override async _generate(messages: BaseMessage[]) {
      sent.push(messages.map((message) => message.text).join("\n"));
      return super._generate(messages);
    }
  }
  const time = { now: START };
  const clock = { now: () => time.now };
  const store = sqliteStore(":memory:", { clock });
  const graph = compile(serviceDesk, {
    model: new Recording(decideServiceDesk),
    store,
    clock,
    view: { policy: "state", statusBar },
  });
  const paused = await graph.invoke({ message: "cancel 9999" }, CONFIG);
  const { workflow, view } = graph.runtime;
  const preview = (message: string | null, switches: Switches = NONE) =>
    previews(store, workflow, "t", { view, now: time.now, message, switches });
  return { graph, paused, sent, time, preview };
}

const shown = ({ all }: Previews, policy = "state") =>
  all
    .find((one) => one.policy === policy)
    ?.view.messages.map(({ content }) => content)
    .join("\n") ?? "";

test("a preview is what the model is sent then, facts included", async () => {
  const { graph, paused, sent, time, preview } = await waitingTask({ timestamps: true });
  time.now += 3 * 3_600_000;
  const expected = shown(await preview("sorry, 1003"));
  expect(expected).toContain("came 2026-03-01 13:00 UTC, 3 h after what came before: what was true");
  const before = sent.length;
  await graph.invoke(answer(paused, "sorry, 1003"), CONFIG);
  expect(sent[before]?.startsWith(expected)).toBe(true);
});

describe("techniques", () => {
  test("are counted one by one", async () => {
    const { preview } = await waitingTask();
    const { shares, bar } = await preview(null);
    expect(shares.map(({ technique, tokens }) => [technique, tokens > 0])).toEqual([
      ["timestamps", false],
      ["counters", true],
      ["todo", true],
      ["errors", true],
      ["system", true],
    ]);
    expect(bar).toMatchObject({ mode: "replace" });
    expect(bar.explanation).toMatch(/^replace: over 3 turns \d+ tokens a bar cost \d+ tokens replaced/);
  });

  test("can be switched off and on for what is shown", async () => {
    const { preview } = await waitingTask();
    const all = shown(await preview(null));
    const without = shown(await preview(null, { on: [], off: ["errors", "todo"] }));
    expect(all).toContain("error type: “NO_CONTRACT”");
    expect(all).toContain("[>] number: ");
    expect(without).not.toMatch(/error type|\[>\] number: /);
    expect(without).toContain("check its arguments");
    const bare = shown(await preview(null, { on: [], off: TECHNIQUES }));
    expect(bare).not.toMatch(/<(?:facts|status)>/);
    const timed = shown(await preview(null, { on: ["timestamps"], off: [] }));
    expect(timed).toContain("came 2026-03-01 10:00 UTC");
  });

  test("are a table at the command line", async () => {
    const { preview } = await waitingTask();
    const switches = switchesOf({ without: ["errors"] });
    const table = techniqueTable(await preview(null, switches), switches);
    expect(table).toMatch(
      /^facts +tokens\ntimestamps +0 {3}nothing to say\ncounters +\d+\ntodo +\d+\nerrors +0 {3}off\nsystem +\d+\nbar: replace: /,
    );
  });
});

test("a bar that is kept because that was asked for is so explained", async () => {
  const { preview } = await waitingTask({ mode: "append" });
  const { bar } = await preview(null);
  expect(bar.mode).toBe("append");
  expect(bar.explanation).toMatch(/^append, as it was asked for; replace: over 3 turns/);
});

describe("--with and --without", () => {
  test.each([
    [{}, [], []],
    [{ without: ["todo", "errors"] }, [], ["todo", "errors"]],
    [{ with: ["timestamps"], without: ["all"] }, ["timestamps"], ["counters", "todo", "errors", "system"]],
    [{ with: ["all"] }, TECHNIQUES, []],
  ])("%j", (options, on, off) => {
    expect(switchesOf(options)).toEqual({ on, off });
  });

  test.each([
    [{ with: ["times"] }, "--with times: there are timestamps, counters, todo, errors, system, all"],
    [{ with: ["todo"], without: ["todo"] }, "--with and --without both name todo; choose one"],
    [{ with: ["all"], without: ["all"] }, "--with and --without both name all; choose one"],
  ])("%j is refused", (options, message) => {
    expect(() => switchesOf(options)).toThrow(message);
  });
});
