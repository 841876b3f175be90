import { readFileSync } from "node:fs";
import fc from "fast-check";
import { compile, defineTool, defineWorkflow, sqliteStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ShownRecords, type ShownRecord } from "../../src/view/shown-records.ts";

const ADDRESS = { street: "931 Maple Drive", suite: "Suite 985", city: "Philadelphia", state: "PA", zip: "19031" };
const order = (id: string, others: ShownRecord = {}): ShownRecord => ({
  id,
  status: "delivered",
  address: ADDRESS,
  items: [{ name: `kettle of ${id}`, price: 94.8 }],
  cancelled: null,
  exchanged: null,
  ...others,
});

describe("records that a prompt has shown", () => {
  test("one that comes again is shown by what has changed", () => {
    const shown = new ShownRecords();
    expect(shown.add(order("A1"))).toBe(null);
    expect(shown.add(order("A1", { status: "returned" }))).toEqual({
      rest: { id: "A1", status: "returned" },
      note: "the rest as it last stood above",
    });
    // Against how it stood last, which was shown by its changes itself.
    expect(shown.add(order("A1", { status: "returned", cancelled: "no" }))?.rest).toEqual({
      id: "A1",
      cancelled: "no",
    });
    expect(shown.add(order("A1"))?.rest).toEqual({ id: "A1", status: "delivered", cancelled: null });
  });

  test("another one like it leaves out long values and nulls that are the same, never short ones: they decide", () => {
    const shown = new ShownRecords();
    shown.add(order("A1"));
    expect(shown.add(order("B2"))).toEqual({
      rest: { id: "B2", status: "delivered", items: [{ name: "kettle of B2", price: 94.8 }] },
      note: "the rest as above in id: A1",
    });
    // The one that is referred to is the one that was shown whole.
    expect(shown.add(order("C3"))?.note).toBe("the rest as above in id: A1");
    // The first one has had two addresses: neither is meant by its name.
    shown.add(order("A1", { address: { ...ADDRESS, street: "12 Elm Street" } }));
    expect(shown.add(order("D4"))).toBe(null);
  });

  test.each([
    ["the members are others", { ...order("B2"), note: "fragile" }],
    ["what it is called by is long", order("B".repeat(61))],
    ["it is called by nothing", { address: ADDRESS, other: ADDRESS, third: 1 }],
    ["little is the same", order("B2", { address: { ...ADDRESS, zip: "1" }, items: [] })],
  ])("it is shown whole where %s", (_why, record) => {
    const shown = new ShownRecords();
    shown.add(order("A1"));
    expect(shown.add(record)).toBe(null);
  });

  test("nothing is lost: every record can be read back from what was shown", () => {
    const value = fc.oneof(
      fc.constant(null),
      fc.constantFrom("delivered", "x".repeat(80), "y".repeat(80)),
      fc.constantFrom(ADDRESS, { ...ADDRESS, zip: "2" }, ["a".repeat(90)], 7),
    );
    const record = fc.record(
      { id: fc.constantFrom("A", "B", "C", 1), status: value, address: value, items: value, extra: value },
      { requiredKeys: ["id", "status", "address"] },
    );
    fc.assert(
      fc.property(fc.array(record, { maxLength: 12 }), (records) => {
        const shown = new ShownRecords();
        // All that a reader has: the texts so far, by what each record is called.
        const read: { name: string; value: ShownRecord; isWhole: boolean }[] = [];
        for (const one of records) {
          const short = shown.add(one);
          const name = `id: ${one.id}`;
          let back: ShownRecord = one;
          if (short) {
            const last = read.findLast((other) => other.name === name);
            const named = read.filter((other) => short.note === `the rest as above in ${other.name}`);
            const isAgain = short.note === "the rest as it last stood above";
            // What the other one's name stands for is the same whenever it was shown, for all that is left out.
            const meant = isAgain ? (last ? [last] : []) : named;
            expect(meant.length).toBeGreaterThan(0);
            for (const source of meant) {
              const left = Object.keys(one).filter((key) => !Object.hasOwn(short.rest, key));
              back = { ...short.rest, ...Object.fromEntries(left.map((key) => [key, source.value[key]])) };
              expect(back).toEqual(one);
            }
            if (!isAgain) expect(named[0]?.isWhole).toBe(true);
          }
          read.push({ name, value: back, isWhole: short === null });
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe("in a prompt", () => {
  const state = { note: "what the customer wrote on the parcel: ".repeat(3), free: null, spare: null };
  const desk = defineWorkflow({
    name: "desk",
    version: 1,
    state: {},
    tools: {
      read: defineTool({
        description: "",
        effect: "read",
        parameters: z.object({ id: z.string(), status: z.string() }),
        run: ({ id, status }) => ({ id, status, ...state }),
      }),
    },
    initial: "serve",
    maxDecisions: 100,
    steps: { serve: { tools: ["read"], to: ["serve", "done"], maxDecisions: 100 }, done: { final: true } },
  });
  const read = (id: string, status: string) => ({ calls: [{ tool: "read", args: { id, status } }] });
  const end = { reply: "Done.", next: "done" };

  async function lastPrompt(view: object, answers: readonly object[]): Promise<string> {
    const model = scriptedModel([...answers, end]);
    await compile(desk, { model, store: sqliteStore(":memory:"), view }).invoke(
      { message: "look" },
      { configurable: { thread_id: "t" } },
    );
    model.assertConsumed();
    return model.prompts.at(-1) ?? "";
  }
  const cached = { provider: "vllm" } as const;

  test("a record that was called for again is shown by what has changed, and what was shown before stays", async () => {
    const prompt = await lastPrompt(cached, [read("A1", "open"), read("A1", "closed")]);
    expect(prompt).toContain("<observation>\nid: A1\nstatus: closed\nthe rest as it last stood above\n</observation>");
    expect(prompt.match(/what the customer wrote on the parcel: {0,1}what/g)).toHaveLength(1);
  });

  test("docs/context.md shows it as it is", async () => {
    const address = { street: "931 Maple Drive", suite: "Suite 985", city: "Philadelphia", state: "PA", zip: "19031" };
    const none = { cancel_reason: null, refund: null, exchange: null };
    const first = {
      id: "W9311",
      address,
      items: [
        { name: "Tea kettle", price: 94.8 },
        { name: "Garden hose", price: 90.43 },
      ],
      status: "pending",
      ...none,
    };
    const lamp = { id: "W3470", address, items: [{ name: "Desk lamp", price: 153.23 }], status: "delivered", ...none };
    const orders = new Map([first, lamp].map((one) => [one.id, one]));
    const parameters = z.object({ id: z.string(), reason: z.string().optional() });
    const shop = defineWorkflow({
      name: "shop",
      version: 1,
      state: {},
      tools: {
        get_order: defineTool({ description: "", effect: "read", parameters, run: ({ id }) => orders.get(id) ?? null }),
        cancel_order: defineTool({
          description: "",
          effect: "write",
          parameters,
          run: ({ id, reason }) => ({ ...orders.get(id), status: "cancelled", cancel_reason: reason, refund: 185.23 }),
        }),
      },
      initial: "serve",
      steps: { serve: { tools: ["get_order", "cancel_order"], to: ["serve", "done"] }, done: { final: true } },
    });
    const model = scriptedModel([
      { calls: [{ tool: "get_order", args: { id: "W9311" } }] },
      { calls: [{ tool: "get_order", args: { id: "W3470" } }] },
      { calls: [{ tool: "cancel_order", args: { id: "W9311", reason: "ordered by mistake" } }] },
      end,
    ]);
    await compile(shop, { model, store: sqliteStore(":memory:"), view: cached }).invoke(
      { message: "look" },
      { configurable: { thread_id: "t" } },
    );
    const prompt = model.prompts.at(-1) ?? "";
    const shown = prompt.slice(prompt.indexOf('{"calls"'), prompt.lastIndexOf("</observation>"));
    expect(readFileSync("docs/context.md", "utf8")).toContain(shown);
  });

  test("results of one decision refer to one another", async () => {
    const both = { calls: [...read("A1", "open").calls, ...read("B2", "open").calls] };
    const prompt = await lastPrompt(cached, [both]);
    expect(prompt).toContain("1.1 read ok:\nid: B2\nstatus: open\nthe rest as above in id: A1\n");
  });

  test("each is shown whole on demand, and where a prompt shows not all of what came before", async () => {
    const twice = [read("A1", "open"), read("A1", "closed")];
    for (const view of [
      { ...cached, repeatRecords: true },
      { policy: "history" },
      { policy: "window" },
      { policy: "state" },
    ]) {
      const prompt = await lastPrompt(view, twice);
      expect(prompt).not.toContain("the rest as");
      expect(prompt).toContain(
        `status: closed\nnote: "${state.note}`.replace('"', prompt.includes('note: "') ? '"' : ""),
      );
    }
  });

  test("nothing refers to what was left out or cut for want of room", async () => {
    const answers = Array.from({ length: 40 }, (_each, index) => read(`A${index % 7}`, `s${index}`));
    let references = 0;
    for (const maxTokens of [450, 600, 900, 1500]) {
      const model = scriptedModel([...answers, end]);
      await compile(desk, { model, store: sqliteStore(":memory:"), view: { ...cached, maxTokens } }).invoke(
        { message: "look" },
        { configurable: { thread_id: "t" } },
      );
      for (const prompt of model.prompts) {
        for (const [, name] of prompt.matchAll(/^the rest as above in (id: \w+)$/gm)) {
          references++;
          expect(prompt).toMatch(new RegExp(`^${name}\nstatus: \\w+\nnote: `, "m"));
        }
        for (const { index } of prompt.matchAll(/^the rest as it last stood above$/gm)) {
          references++;
          const name = /.*^(id: \w+)$/ms.exec(prompt.slice(0, index))?.[1];
          expect(prompt.slice(0, index).match(new RegExp(`^${name}$`, "gm"))?.length).toBeGreaterThan(1);
        }
      }
    }
    expect(references).toBeGreaterThan(100);
  });

  test("what has too many tokens to be shown whole is not referred to", async () => {
    const prompt = await lastPrompt({ ...cached, maxResultTokens: 30 }, [read("A1", "open"), read("A1", "closed")]);
    expect(prompt).toContain("characters left out");
    expect(prompt).not.toContain("the rest as");
  });

  test("an option that is no truth value is refused", () => {
    expect(() => compile(desk, { view: { repeatRecords: "yes" as never } })).toThrow(
      /view\.repeatRecords must be true or false/,
    );
  });
});
