import { Command, INTERRUPT } from "@langchain/langgraph";
import {
  compile,
  defineTool,
  defineWorkflow,
  describeTask,
  field,
  sqliteStore,
  type MapResult,
  type MapRule,
  type StepContext,
  type TaskStore,
} from "statecard";
import { onFaultPoint } from "statecard/testing";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { onBothDialects } from "../support/stores.ts";
import { Workshop } from "../support/workshop.ts";

afterEach(() => onFaultPoint(null));

const config = { configurable: { thread_id: "t" } };

/** Goes through the items of its input with the workshop's tool, or with what `rule` says. */
function listing(shop: Workshop, rule: Partial<MapRule<never, never, never>> = {}) {
  return defineWorkflow({
    name: "listing",
    version: 1,
    state: { items: field(z.array(z.unknown())).maxBytes(100_000), found: field(z.array(z.unknown())) },
    input: ["items"],
    stateBudget: { maxBytes: 200_000 },
    tools: rule.workflow ? {} : shop.workflow.tools,
    initial: "each",
    steps: {
      each: {
        map: {
          over: ({ items }) => items ?? [],
          tool: "work",
          input: (item: unknown) => ({ name: String(item) }),
          output: (results) => ({ patch: { found: results.map(brief) } }),
          ...rule,
        } as MapRule<never, never, never>,
        to: ["done"],
      },
      done: { final: true },
    },
  } as never);
}

const brief = ({ status, value, error }: MapResult) =>
  error === null ? ((value as { name?: string } | null)?.name ?? status) : `${status}: ${error}`;

const start = (shop: Workshop, items: unknown, rule?: Partial<MapRule<never, never, never>>, store?: TaskStore) =>
  compile(listing(shop, rule), { store: store ?? sqliteStore(":memory:") }).invoke({ items } as never, config);

describe("a tool for each item of a list", () => {
  test("gives all results in the order of the items, whichever ends first", async () => {
    const shop = new Workshop();
    const first = shop.hold("a");
    const running = start(shop, ["a", "b", "c"]);
    await Promise.all([first.begun, shop.until("-b"), shop.until("-c")]);
    first.release();
    expect(await running).toMatchObject({ found: ["a", "b", "c"], execution: { status: "completed", decisions: 1 } });
  });

  test.each([undefined, 1, 7])("no more run at once than `parallel` says: %s", async (parallel) => {
    const shop = new Workshop();
    const items = Array.from({ length: 20 }, (_, index) => `i${index}`);
    const ended = await start(shop, items, parallel === undefined ? {} : { parallel });
    expect(ended).toMatchObject({ found: items });
    expect(shop.mostAtOnce).toBe(parallel ?? 4);
  });

  test("what fails fails alone, and the output learns of it", async () => {
    const shop = new Workshop();
    const ended = await start(shop, ["a", "broken", "c"]);
    expect(ended).toMatchObject({
      found: ["a", "error: broken is out of order", "c"],
      execution: { status: "completed" },
    });
  });

  test("an empty list calls nothing and goes on", async () => {
    const shop = new Workshop();
    expect(await start(shop, [])).toMatchObject({ found: [], execution: { status: "completed", decisions: 1 } });
    expect(shop.log).toEqual([]);
  });

  test("a thousand items are taken; one more, or no list, is refused before anything runs", async () => {
    const items = (count: number) => Array.from({ length: count }, (_, index) => index);
    const shop = new Workshop();
    const output = (results: readonly MapResult[]) => ({ patch: { found: [results.length] } });
    const many = { output, parallel: 50 } as never;
    expect(await start(shop, items(1000), many)).toMatchObject({ found: [1000] });
    const refusing = new Workshop();
    await expect(start(refusing, items(1001), many)).rejects.toMatchObject({
      code: "STEP_FAILED",
      message: expect.stringContaining("map.over gave 1001 items; it has to give a list of at most 1000"),
    });
    const none = { over: () => "abc" as never };
    await expect(start(refusing, [], none)).rejects.toMatchObject({ message: expect.stringContaining("no list") });
    expect(refusing.log).toEqual([]);
  }, 240_000);

  test("an item that does not fit the tool is told, and nothing runs", async () => {
    const shop = new Workshop();
    const ended = await start(shop, ["a"], { input: () => ({ name: 5 }) });
    expect(ended.execution).toMatchObject({ status: "failed", lastError: { code: "INVALID_ARGUMENTS" } });
    expect(shop.log).toEqual([]);
  });

  test("K22: an item that looks like a reference is an item", async () => {
    const shop = new Workshop();
    const items = [{ $ref: "c2" }, { $ref: "c1.secret", more: 1 }, { $ref: "$1" }];
    const input = ((item: unknown, index: number) => ({ name: `w${index}`, uses: item })) as never;
    const ended = await start(shop, items, { input });
    expect(ended.execution.status).toBe("completed");
    expect([0, 1, 2].map((index) => shop.given.get(`w${index}`)?.uses)).toEqual(items);
  });

  test("an output that throws, asks, calls or is refused leaves the results for another try: no item runs twice", async () => {
    for (const output of [
      () => {
        throw new Error("oops");
      },
      () => ({ ask: "What now?" }),
      () => ({ calls: [{ tool: "work", args: { name: "more" } }] }),
      () => ({ patch: { found: "no list" } }),
      () => ({ next: "each" }),
    ]) {
      const shop = new Workshop();
      const store = sqliteStore(":memory:");
      await expect(start(shop, ["a", "b"], { output: output as never }, store)).rejects.toMatchObject({
        code: "STEP_FAILED",
        message: expect.stringContaining("output of step each"),
      });
      // Mended, it goes on where it was.
      const mended = await compile(listing(shop), { store }).invoke(null, config);
      expect(mended).toMatchObject({ found: ["a", "b"], execution: { status: "completed", decisions: 1 } });
      expect(shop.log.filter((line) => line.startsWith("+"))).toEqual(["+a", "+b"]);
    }
  });

  onBothDialects((dialect) => {
    test("killed in the middle, it goes on with the items that are left", async () => {
      const shop = new Workshop();
      let left = 3;
      onFaultPoint((reached) => {
        if (reached === "after-result" && --left === 0) throw new Error("killed");
      });
      const items = ["a", "b", "c", "d", "e", "f"];
      await expect(start(shop, items, { parallel: 1 }, dialect.open())).rejects.toThrow("killed");
      onFaultPoint(null);
      const graph = compile(listing(shop, { parallel: 1 }), { store: dialect.open() });
      expect(await graph.invoke(null, config)).toMatchObject({ found: items, execution: { status: "completed" } });
      expect(shop.log.filter((line) => line.startsWith("+"))).toEqual(items.map((item) => `+${item}`));
    });
  });
});

describe("a workflow for each item of a list", () => {
  const began: string[] = [];
  afterEach(() => void began.splice(0));

  const one = defineWorkflow({
    name: "one",
    version: 1,
    state: { name: field(z.string()), said: field(z.string()) },
    input: ["name"],
    tools: {
      note: defineTool({
        description: "Notes.",
        parameters: z.object({ name: z.string() }),
        effect: "write",
        run: ({ name }) => {
          began.push(name);
          return name;
        },
      }),
    },
    initial: "noting",
    steps: {
      noting: {
        tools: ["note"],
        to: ["asking"],
        run: ({ name }) => ({ calls: [{ tool: "note", args: { name: `${name}` } }], next: "asking" }),
      },
      asking: {
        to: ["end", "broken"],
        run: ({ name }, { observation }: StepContext) => {
          if (observation?.kind === "answer") return { patch: { said: observation.text }, next: "end" };
          if (name?.startsWith("asks")) return { ask: `What about ${name}?` };
          if (name === "broken") return { patch: { name: 5 as never } };
          return { patch: { said: `${name} is done` }, next: "end" };
        },
      },
      broken: { to: ["end"] },
      end: { final: true },
    },
  });
  const rule = {
    tool: undefined,
    workflow: one,
    output: (results: readonly MapResult[]) => ({
      patch: { found: results.map(({ status, value }) => [status, (value as { said: string | null }).said]) },
    }),
  } as object;
  const listingOf = () => listing(new Workshop(), rule);
  const requestsIn = (result: object) =>
    (
      (result as { [INTERRUPT]?: { value: { requests: { id: string; question: string }[] } }[] })[INTERRUPT] ?? []
    ).flatMap(({ value }) => value.requests);

  onBothDialects((dialect) => {
    test("those that ask wait, each with an id of its own, while the others are done; answered in any order", async () => {
      const thread = { configurable: { thread_id: `w-${dialect.place.length}` } };
      const graph = () => compile(listingOf(), { store: dialect.open() });
      const items = ["a", "asks 1", "b", "broken", "asks 2", "c"];
      const paused = await graph().invoke({ items } as never, thread);
      const requests = requestsIn(paused);
      expect(requests.map(({ question }) => question)).toEqual(["What about asks 1?", "What about asks 2?"]);
      expect(new Set(requests.map(({ id }) => id)).size).toBe(2);
      expect(began.toSorted()).toEqual(items.toSorted());
      const [first, second] = requests.map(({ id }) => id);
      const half = await graph().invoke(new Command({ resume: { [`${second}`]: "two" } }), thread);
      expect(requestsIn(half).map(({ id }) => id)).toEqual([first]);
      const ended = await graph().invoke(new Command({ resume: { [`${first}`]: "one" } }), thread);
      expect(ended).toMatchObject({
        execution: { status: "completed" },
        found: [
          ["completed", "a is done"],
          ["completed", "one"],
          ["completed", "b is done"],
          ["failed", null],
          ["completed", "two"],
          ["completed", "c is done"],
        ],
      });
      // Each began once.
      expect(began.toSorted()).toEqual(items.toSorted());
    });

    test("killed in the middle, those that have ended do not begin again", async () => {
      const thread = { configurable: { thread_id: `k-${dialect.place.length}` } };
      const graph = () => compile(listingOf(), { store: dialect.open() });
      let left = 4;
      onFaultPoint((reached) => {
        if (reached === "after-result" && --left === 0) throw new Error("killed");
      });
      const items = ["a", "b", "c", "d", "e", "f"];
      await expect(graph().invoke({ items } as never, thread)).rejects.toThrow("killed");
      onFaultPoint(null);
      const ended = await graph().invoke(null, thread);
      expect(ended).toMatchObject({
        execution: { status: "completed" },
        found: items.map((item) => ["completed", `${item} is done`]),
      });
      expect(began.toSorted()).toEqual(items);
    });
  });

  test("an approval and a rejection reach the items that they name, whatever order they come in", async () => {
    const paid: string[] = [];
    const pay = defineTool({
      description: "Pays.",
      parameters: z.object({ name: z.string() }),
      effect: "write",
      approve: true,
      run: ({ name }) => void paid.push(name),
    });
    const payment = defineWorkflow({
      name: "payment",
      version: 1,
      state: { name: field(z.string()) },
      input: ["name"],
      tools: { pay },
      initial: "paying",
      steps: {
        paying: {
          tools: ["pay"],
          to: ["end"],
          run: ({ name }, { observation }: StepContext) =>
            observation?.kind === "results" ? { next: "end" } : { calls: [{ tool: "pay", args: { name: `${name}` } }] },
        },
        end: { final: true },
      },
    });
    const graph = compile(listing(new Workshop(), { ...rule, workflow: payment, output: () => ({}) } as object), {
      store: sqliteStore(":memory:"),
    });
    const [good, evil] = requestsIn(await graph.invoke({ items: ["good", "evil"] } as never, config));
    const edit = new Command({ resume: { [`${evil?.id}`]: { type: "edit", args: { name: 5 } } } });
    await expect(graph.invoke(edit, config)).rejects.toMatchObject({ code: "INVALID_REPLY" });
    const decisions = [
      { type: "reject", id: evil?.id },
      { type: "approve", id: good?.id },
    ];
    await graph.invoke(new Command({ resume: { decisions } }), config);
    expect(paid).toEqual(["good"]);
  });

  test("what they cost is counted to the task that started them, and it says what waits", async () => {
    const store = sqliteStore(":memory:");
    await compile(listingOf(), { store }).invoke({ items: ["asks 1"] } as never, config);
    expect((await describeTask(store, "t")).waiting).toMatchObject([{ question: "What about asks 1?" }]);
  });
});
