import fc from "fast-check";
import { defineTool, defineWorkflow, field, resourceField } from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { Observation } from "../../src/state/execution.ts";
import { POLICIES, viewOptions } from "../../src/view/options.ts";
import { renderView, viewTokens } from "../../src/view/render.ts";
import { transcript } from "../../src/view/transcript.ts";
import { holdsWithheld, withhold } from "../../src/view/withhold.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";
import { newExecution } from "../../src/state/execution.ts";

const lookUp = defineTool({
  description: "Looks a customer up.",
  effect: "read",
  parameters: z.object({ id: z.string() }),
  sensitive: "personal data",
  run: () => null,
});
const workflow = anyWorkflow(
  defineWorkflow({
    name: "w",
    version: 1,
    state: {
      customer: field(z.object({ name: z.string(), phones: z.array(z.string()), born: z.number() })).sensitive(
        "personal data",
      ),
      note: field(z.string()),
    },
    sensitive: { innerAddresses: "inner addresses" },
    tools: { lookUp },
    initial: "a",
    steps: { a: { writes: ["customer", "note"], tools: ["lookUp"], to: ["a", "b"] }, b: { final: true } },
  }),
);
const none = { ...newExecution(workflow), taskId: "t" };
const kinds = ["personal data", "inner addresses"];

/** A task whose secret values stand in its field, and in texts all over it. */
const secret = fc
  .stringMatching(/^[A-Za-z0-9@.+ 网络ü'$()*\\[\]^?|-]{4,24}$/)
  .map((text) => text.trim())
  // A name or choice that stands in a field's schema is known to all.
  .filter((text) => text.length >= 4 && !/^[A-Za-z$]+$/.test(text));
const around = fc.constantFrom("", " ", ": ", "\n", '"', "(", ", ", "，", "=");
const task = fc.record({
  name: secret,
  phone: secret,
  born: fc.integer({ min: 1000, max: 99_999_999 }),
  before: around,
  after: around,
});

function withSecrets({
  name,
  phone,
  born,
  before,
  after,
}: {
  name: string;
  phone: string;
  born: number;
  before: string;
  after: string;
}) {
  const text = `see${before || " "}${name}${after || " "}and${before || " "}${phone}${after || " "}of ${born}`;
  const customer = { name, phones: [phone], born };
  const results: Observation = {
    kind: "results",
    results: [
      { id: "1.0", tool: "lookUp", status: "ok", value: customer },
      { id: "1.1", tool: "lookUp", status: "error", error: text, errorType: "Error" },
    ],
    facts: [text],
  };
  const events = [
    { kind: "started", data: { input: { message: text } }, sequence: 1, revision: 0 },
    {
      kind: "decision",
      data: { decision: { calls: [{ tool: "lookUp", args: { id: name } }], because: text }, to: "a" },
      sequence: 2,
      revision: 1,
    },
    { kind: "result", data: { observation: results, to: "a" }, sequence: 3, revision: 2 },
    {
      kind: "decision",
      data: { decision: { patch: { customer, note: text }, ask: text }, to: "a" },
      sequence: 4,
      revision: 3,
    },
  ];
  const observation: Observation = { kind: "answer", question: text, text, facts: [text] };
  const snapshot = {
    execution: { ...none, recent: [text], observation, lastError: { code: "X", message: text, step: "a" } },
    state: { customer, note: text },
  };
  return { snapshot, observation, turns: transcript(events), texts: [name, phone, String(born)] };
}

test("no value of a withheld field comes into any prompt, wherever else it stands", () => {
  fc.assert(
    fc.property(task, fc.constantFrom(...POLICIES), (values, policy) => {
      const { snapshot, observation, turns, texts } = withSecrets(values);
      const shown = withhold(workflow, kinds, { snapshot, observation, turns });
      const options = { ...viewOptions({ policy }), provider: "openai" as const };
      const view = renderView({ workflow, ...shown, options, assignment: [], standing: null });
      // The first message is made of the definition alone.
      const prompt = view.messages
        .slice(1)
        .map(({ content }) => content)
        .join("\n")
        .toLowerCase();
      for (const text of texts) {
        const found = prompt.split(text.toLowerCase()).length - 1;
        const own = viewOfNothing(policy).split(text.toLowerCase()).length - 1;
        expect(found, `${policy}: ${text}`).toBe(own);
      }
    }),
    { numRuns: 120 },
  );
});

/** What a prompt says anyway. */
function viewOfNothing(policy: (typeof POLICIES)[number]): string {
  const { snapshot, observation, turns } = withSecrets({
    name: "ÄÄÄÄ",
    phone: "ÖÖÖÖ",
    born: 1_234_567,
    before: " ",
    after: " ",
  });
  const shown = withhold(workflow, kinds, { snapshot, observation, turns });
  const options = { ...viewOptions({ policy }), provider: "openai" as const };
  return renderView({ workflow, ...shown, options })
    .messages.slice(1)
    .map(({ content }) => content)
    .join("\n")
    .toLowerCase();
}

describe("what stays", () => {
  const { snapshot, observation, turns } = withSecrets({
    name: "Ada Lovelace",
    phone: "555-1234",
    born: 18_151_210,
    before: " ",
    after: " ",
  });

  test("is the same where nothing of it is of a withheld kind", () => {
    const shown = withhold(workflow, ["something else"], { snapshot, observation, turns });
    expect(shown.snapshot).toMatchObject(snapshot);
    expect(shown.observation).toEqual(observation);
    expect(shown.turns).toEqual(turns);
    expect(holdsWithheld(shown.turns)).toBe(false);
  });

  test("is a longer word that a value is only a part of, and a short value elsewhere", () => {
    const { hide } = withhold(workflow, kinds, {
      snapshot: { ...snapshot, state: { customer: { name: "mark", phones: ["12"], born: 2000 }, note: null } },
      observation: null,
      turns: [],
    });
    expect(hide("Mark makes bookmarks at 12 in 20001 and in 2000")).toBe(
      "[withheld] makes bookmarks at 12 in 20001 and in [withheld]",
    );
  });

  test("is every address that others know too", () => {
    const { hide } = withhold(workflow, kinds, {
      snapshot: { execution: none, state: {} },
      observation: null,
      turns: [],
    });
    const inner = [
      "10.0.0.1",
      "192.168.1.20",
      "172.20.3.4",
      "169.254.1.1",
      "fd12:3456:789a::1",
      "db.local",
      "a.b.internal",
      "printer.lan",
      "x.corp",
      "100.64.0.1",
      "fe80::1",
      "db.private",
      "router.home",
      "db_1.corp",
      "a.b.c.d.e.f.g.h.local",
    ];
    for (const address of inner)
      expect(hide(`at ${address}, twice (${address}).`)).toBe("at [withheld], twice ([withheld]).");
    for (const other of [
      "8.8.8.8",
      "172.32.0.1",
      "110.0.0.1",
      "1.10.0.0.1.2",
      "example.com",
      "localhost",
      "version 10.2.3",
      "a.local.example.com",
      "fdisk: done",
    ]) {
      expect(hide(other)).toBe(other);
    }
  });

  test("does not take longer than it is long", () => {
    const { hide } = withhold(workflow, kinds, {
      snapshot: { execution: none, state: {} },
      observation: null,
      turns: [],
    });
    for (const long of [
      "a.".repeat(200_000),
      "a-".repeat(200_000),
      "10.".repeat(200_000),
      "fd00:".repeat(100_000),
      "x".repeat(400_000),
    ]) {
      expect(hide(long)).toBe(long);
    }
  });
});

test("a resource can be of a kind as a field", () => {
  expect(resourceField().sensitive("code").rules.sensitive).toBe("code");
});

test("hiding leaves no prompt above its limit", () => {
  const { snapshot, observation, turns } = withSecrets({
    name: "data",
    phone: "time",
    born: 2000,
    before: " ",
    after: " ",
  });
  const note = "data time ".repeat(3000);
  const shown = withhold(workflow, kinds, {
    snapshot: { ...snapshot, state: { ...snapshot.state, note } },
    observation,
    turns,
  });
  const view = renderView({ workflow, ...shown, options: viewOptions({ policy: "state", maxTokens: 2000 }) });
  expect(viewTokens(view)).toBeLessThanOrEqual(2000);
});

test.each(["[withheld] Ada, 4711 Main Street", "[withheld: personal data] 4711", "withheld", "personal"])(
  "a value that looks like what stands for one is found, and what stands for one stays: %s",
  (name) => {
    const state = { customer: { name, phones: [], born: 1 }, note: `${name}; [withheld], [withheld: personal data]` };
    const whole = { snapshot: { state, execution: none, moves: [] }, observation: null, turns: [] };
    const { snapshot, hide } = withhold(workflow, kinds, whole);
    expect(snapshot.state.note).toBe("[withheld]; [withheld], [withheld: personal data]");
    expect(hide(String(snapshot.state.note))).toBe(snapshot.state.note);
  },
);
