import {
  answer,
  compile,
  defineTool,
  defineWorkflow,
  field,
  Memories,
  memoryTools,
  planField,
  signedIn,
  sqliteStore,
  todoField,
  ToolError,
  type CompileOptions,
  type WorkflowGraph,
} from "statecard";
import { scriptedModel, type ScriptedAnswer } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { POLICIES, type Policy } from "../../src/view/options.ts";
import { RemoteModel } from "../support/remote-model.ts";

// Ways out that were tried on what is withheld. Each ends in prompts that hold none of these.
const NAME = "Zaphod Beeblebrox";
const IBAN = "DE8937040044";
const EMAIL = "ada@example.net";

const config = { configurable: { thread_id: "t" } };
const kinds = { personal: "withhold", remembered: "withhold", written: "withhold", keys: "withhold" } as const;
const none = z.object({});

const lookUp = defineTool({
  description: "Looks a customer up.",
  effect: "read",
  parameters: none,
  sensitive: "personal",
  run: () => ({ name: NAME, iban: IBAN }),
});
const echo = defineTool({
  description: "Counts.",
  effect: "read",
  parameters: z.object({ text: z.string() }),
  run: ({ text }) => `${text.length} long`,
});
const thrower = defineTool({
  description: "Fails.",
  effect: "read",
  parameters: z.object({ text: z.string() }),
  run: ({ text }) => {
    throw new Error(`no such ${text}`);
  },
});
const last = { final: true } as const;

/** Runs a workflow with a model elsewhere, and gives all that the model was shown. */
async function shownBy(
  workflow: unknown,
  script: readonly ScriptedAnswer[],
  { input = { message: "go" }, ...options }: Partial<CompileOptions> & { readonly input?: object } = {},
) {
  const model = new RemoteModel(script);
  const compiled = compile(workflow as never, {
    model,
    store: sqliteStore(":memory:"),
    consent: { kinds },
    ...options,
  });
  const graph = compiled as unknown as WorkflowGraph;
  const result = await graph.invoke(input as never, config);
  return { model, graph, result, text: () => model.prompts.join("\n") };
}

const call = (tool: string, args: object, rest: object = {}) => ({ tool, args, ...rest });

describe("of results that are withheld, nothing is shown", () => {
  const plan = defineWorkflow({
    name: "plan",
    version: 1,
    state: { plan: planField() },
    tools: { lookUp, echo, thrower },
    initial: "a",
    steps: { a: { plan: { into: "plan" }, tools: ["lookUp", "echo", "thrower"], to: ["b"] }, b: last },
  });

  test.each(POLICIES)("by a plan, its references and expectations, under %s", async (policy) => {
    const first = call("lookUp", {}, { id: "c1", expect: [{ path: "name", is: "equal to", value: "nobody" }] });
    const second = call("echo", { text: { $ref: "c1.name" } }, { id: "c2" });
    const third = call("thrower", { text: { $ref: "c1.iban" } }, { id: "c3" });
    const { text } = await shownBy(plan, [{ calls: [first, second, third] }, { ask: "What now?" }], {
      view: { policy },
    });
    for (const secret of [NAME, IBAN]) expect(text()).not.toContain(secret);
    expect(text()).toContain("[withheld: personal]");
  });

  test("by the field of a free loop", async () => {
    const loop = defineWorkflow({
      name: "loop",
      version: 1,
      state: { plan: planField() },
      tools: { lookUp },
      initial: "a",
      steps: { a: { react: { into: "plan" }, tools: ["lookUp"], to: ["b"] }, b: last },
    });
    const { text } = await shownBy(loop, [{ calls: [call("lookUp", {})] }, { next: "b" }]);
    expect(text()).not.toContain(NAME);
  });

  test.each(["state", "adaptive", "history"] as Policy[])(
    "by errors and what code tells of them, under %s",
    async (policy) => {
      const locked = defineTool({
        description: "Fails.",
        effect: "read",
        parameters: z.object({ id: z.string() }),
        sensitive: "personal",
        run: ({ id }) => {
          throw new ToolError(`the account of ${NAME} is locked (${id})`, {
            type: `Locked${IBAN}`,
            hint: `ask ${EMAIL}`,
          });
        },
      });
      const workflow = defineWorkflow({
        name: "errors",
        version: 1,
        state: {},
        tools: { locked },
        initial: "a",
        steps: { a: { tools: ["locked"], to: ["a", "b"] }, b: last },
      });
      const script = [
        { calls: [call("locked", { id: "1" })] },
        { calls: [call("locked", { id: "2" })] },
        { next: "b" },
      ];
      const { text } = await shownBy(workflow, script, { view: { policy } });
      for (const secret of [NAME, IBAN, EMAIL]) expect(text()).not.toContain(secret);
    },
  );

  test("by why code could not keep something of them", async () => {
    const workflow = defineWorkflow({
      name: "keeping",
      version: 1,
      state: { note: field(z.string().max(3)).sensitive("personal") },
      tools: { lookUp },
      onResult: {
        lookUp: ({ value }) => {
          throw new Error(`cannot keep ${JSON.stringify(value)}`);
        },
      },
      initial: "a",
      steps: { a: { writes: ["note"], tools: ["lookUp"], to: ["a", "b"] }, b: last },
    });
    const { text } = await shownBy(workflow, [{ calls: [call("lookUp", {})] }, { next: "b" }]);
    expect(text()).not.toContain(NAME);
    expect(text()).toContain("something was not done");
  });

  test.each(["state", "adaptive"] as Policy[])("because the latest decision was another, under %s", async (policy) => {
    const read = defineTool({
      description: "Reads.",
      effect: "read",
      parameters: z.object({ path: z.string() }),
      sensitive: { kinds: ["keys"], of: ({ path }) => (path.startsWith("keys/") ? "keys" : null) },
      run: ({ path }) => `${IBAN} of ${path}`,
    });
    const workflow = defineWorkflow({
      name: "other",
      version: 1,
      state: {},
      tools: { read },
      initial: "a",
      steps: {
        a: { tools: ["read"], approve: { read: ({ path }) => path === "ask" }, to: ["a", "c"] },
        c: { tools: ["read"], to: ["b"] },
        b: last,
      },
    });
    const script = [
      { calls: [call("read", { path: "keys/id" })] },
      { calls: [call("read", { path: "ask" })] },
      { next: "b" },
    ];
    const { graph, text } = await shownBy(workflow, script, { view: { policy } });
    const asAda = { configurable: { thread_id: "t", ...signedIn("ada") } };
    await graph.override(asAda, { step: "c", reason: "it hangs" });
    await graph.invoke(null, config);
    expect(text()).not.toContain(IBAN);
  });

  test("by memories, in the block or recalled", async () => {
    const store = sqliteStore(":memory:");
    const memories = new Memories({ store: store.memory(), user: "ann" });
    const remembering = {
      ...lookUp,
      remembers: () => [{ type: "fact" as const, text: `the customer is ${NAME}`, priority: 5 as const }],
    };
    const { remember, recall, forget } = memoryTools(memories);
    const workflow = defineWorkflow({
      name: "memory",
      version: 1,
      state: {},
      sensitive: { memories: "remembered" },
      tools: { remembering, remember, recall, forget },
      initial: "a",
      steps: { a: { tools: ["remembering", "remember", "recall", "forget"], to: ["a", "b"] }, b: last },
    });
    const script = [
      { calls: [call("remembering", {})] },
      { calls: [call("recall", { query: "customer" })] },
      { next: "b" },
    ];
    const { text, graph } = await shownBy(workflow, script, { store, memories });
    const log = JSON.stringify(await graph.runtime.store.events("t"));
    expect(log.split(NAME).length).toBeGreaterThan(2);
    expect(text()).not.toContain(NAME);
    const undeclared = () =>
      defineWorkflow({
        name: "undeclared",
        version: 1,
        state: {},
        tools: { remembering },
        initial: "a",
        steps: { a: { tools: ["remembering"], to: ["b"] }, b: last },
      });
    expect(undeclared).toThrow("tools.remembering.remembers: what it remembers is of personal");
  });

  test("after a release has removed their tool or renamed a field", async () => {
    const store = sqliteStore(":memory:");
    const define = (version: number, isOld: boolean) =>
      defineWorkflow({
        name: "release",
        version,
        state: { [isOld ? "mail" : "contact"]: field(z.string()).sensitive("personal") },
        tools: { [isOld ? "lookUp" : "echo"]: isOld ? lookUp : echo },
        ...(isOld ? {} : { migrations: { 2: { renameFields: { mail: "contact" } } } }),
        initial: "a",
        steps: {
          a: {
            writes: [isOld ? "mail" : "contact"] as never,
            tools: [isOld ? "lookUp" : "echo"] as never,
            to: ["a", "b"],
          },
          b: last,
        },
      });
    const old = new RemoteModel([{ patch: { mail: EMAIL } }, { calls: [call("lookUp", {})] }, { ask: "?" }]);
    const allowed = { kinds: { personal: "allow" } } as const;
    const graph = compile(define(1, true), { model: old, store, consent: allowed });
    const paused = await graph.invoke({ message: "go" }, config);
    const model = new RemoteModel([{ next: "b" }]);
    const next = compile(define(2, false), { model, store, consent: { kinds }, view: { policy: "history" } });
    await next.invoke(answer(paused as never, "yes") as never, config);
    for (const secret of [EMAIL, NAME]) expect(model.prompts[0]).not.toContain(secret);
  });
});

describe("of what people wrote, and of values of fields, nothing is shown", () => {
  test.each(["state", "history", "adaptive"] as Policy[])(
    "by a rejection or changed arguments, under %s",
    async (policy) => {
      const act = defineTool({
        description: "Acts.",
        effect: "write",
        parameters: z.object({ to: z.string() }),
        run: () => "sent",
      });
      const workflow = defineWorkflow({
        name: "said",
        version: 1,
        state: {},
        sensitive: { messages: "written" },
        tools: { act },
        initial: "a",
        steps: { a: { tools: ["act"], approve: { act: true }, to: ["a", "b"] }, b: last },
      });
      const script = [{ calls: [call("act", { to: "x" })] }, { calls: [call("act", { to: "y" })] }, { next: "b" }];
      const { graph, result, text } = await shownBy(workflow, script, { view: { policy } });
      const second = await graph.invoke(answer(result, { type: "reject", message: `no, ${NAME} told me` }), config);
      await graph.invoke(answer(second, { type: "edit", args: { to: EMAIL } }), config);
      for (const secret of [NAME, EMAIL]) expect(text()).not.toContain(secret);
    },
  );

  test("by ids and expectations that a planner here has written", async () => {
    const planner = scriptedModel([
      { calls: [call("echo", { text: "q" }, { id: EMAIL, expect: [{ is: "equal to", value: EMAIL }] })] },
      { calls: [call("echo", { text: "q" }, { id: "c1" })] },
    ]);
    const workflow = defineWorkflow({
      name: "planner",
      version: 1,
      state: { email: field(z.string()).sensitive("personal"), plan: planField() },
      input: ["email"],
      tools: { echo },
      initial: "a",
      steps: { a: { plan: { into: "plan", planner }, tools: ["echo"], to: ["b"] }, b: last },
    });
    const input = { email: EMAIL, message: "go" };
    const { text } = await shownBy(workflow, [{ next: "b" }], { input, view: { policy: "history" } });
    expect(text()).not.toContain(EMAIL);
  });

  test("by a todo list that the status bar keeps with observations", async () => {
    const todo = `call ${NAME} back about the account ${IBAN} and every other thing that was agreed on in the spring`;
    const workflow = defineWorkflow({
      name: "todos",
      version: 1,
      state: { todos: todoField().sensitive("personal") },
      input: ["todos"],
      initial: "a",
      steps: { a: { to: ["a", "b"] }, b: last },
    });
    const input = { message: "go", todos: [{ id: "1", text: todo, status: "pending", at: 0 }] };
    const { text } = await shownBy(workflow, [{ next: "a" }, { next: "b" }], {
      input,
      view: { statusBar: { mode: "append" } },
    });
    for (const secret of [NAME, IBAN]) expect(text()).not.toContain(secret);
  });

  test("by a snapshot that was taken before the value was known", async () => {
    const workflow = defineWorkflow({
      name: "later",
      version: 1,
      state: { note: field(z.string()), who: field(z.string()).sensitive("personal") },
      input: ["note"],
      initial: "a",
      steps: {
        a: { to: ["a", "c", "b"] },
        c: { run: () => ({ patch: { who: NAME }, next: "a" }), to: ["a"] },
        b: last,
      },
    });
    const script = [{ next: "a" }, { next: "c" }, { next: "a" }, { next: "b" }];
    const input = { note: `call ${NAME} back`, message: "go" };
    const { model } = await shownBy(workflow, script, { input, view: { policy: "adaptive", provider: "openai" } });
    expect(model.prompts[1]).toContain(NAME);
    for (const prompt of model.prompts.slice(2)) expect(prompt).not.toContain(NAME);
  });

  test.each(["message", "answer", "results", "kind", "args", "tool", "id"])("where it is called %s", async (word) => {
    const workflow = defineWorkflow({
      name: "words",
      version: 1,
      state: { word: field(z.string()).sensitive("personal") },
      input: ["word"],
      tools: { echo },
      initial: "a",
      steps: { a: { tools: ["echo"], to: ["a", "b"] }, b: last },
    });
    const script = [{ calls: [call("echo", { text: "x" }, { id: "c1" })] }, { ask: "?" }, { next: "b" }];
    for (const policy of POLICIES) {
      const { graph, result, text } = await shownBy(workflow, script, {
        input: { word, message: "go" },
        view: { policy },
      });
      const done = await graph.invoke(answer(result, "yes"), config);
      expect(done.execution.status).toBe("completed");
      expect(text()).toContain("1 long");
    }
  });

  test("by a reason that was cut in the middle of a value", async () => {
    const long = "ada.lovelace.the.first@averylongdomainname.example.net";
    const local = scriptedModel([
      { reply: `${"x".repeat(80)} to ${long}`, next: "l" },
      { because: `${"x".repeat(80)} to ${long}` },
      { because: "enough", next: "a" },
    ]);
    const workflow = defineWorkflow({
      name: "cut",
      version: 1,
      state: { email: field(z.string()).sensitive("personal") },
      input: ["email"],
      initial: "l",
      steps: { l: { model: local, to: ["l", "a"] }, a: { to: ["b"] }, b: last },
    });
    const { text } = await shownBy(workflow, [{ next: "b" }], { input: { email: long, message: "go" } });
    expect(text()).not.toContain("ada.lovelace");
  });

  const one = (value: z.ZodType) =>
    defineWorkflow({
      name: "one",
      version: 1,
      state: { value: field(value).sensitive("personal") },
      input: ["value"],
      initial: "a",
      steps: { a: { to: ["b"] }, b: last },
    });

  test.each([
    ["JSON", 'Ada "Countess" L', JSON.stringify({ who: 'Ada "Countess" L' })],
    ["other marks on letters", "Jörg Müller", "Jörg Müller".normalize("NFD")],
    ["wide letters", EMAIL, "ａｄａ＠ｅｘａｍｐｌｅ．ｎｅｔ"],
    ["another blank", "Ada Lovelace", "Ada\u00a0Lovelace"],
    ["two blanks", "Ada Lovelace", "Ada  Lovelace"],
    ["a line's end", "12 Main St\nTown", "12 Main St\r\nTown"],
    ["one line of several", "first line of it\nsecond line", "first line of it"],
    ["an underscore before it", EMAIL, `to_${EMAIL}`],
    ["an earlier key", { [EMAIL]: 3 }, EMAIL],
  ])("in %s", async (_what, value, written) => {
    const { text } = await shownBy(one(z.any().refine((given) => given !== null)), [{ next: "b" }], {
      input: { value, message: `see ${written}.` },
    });
    expect(text()).toContain("see ");
    expect(text()).not.toContain(`see ${written}.`);
    expect(text()).toContain("[withheld]");
  });

  test("however long or many they are, and in no long time", async () => {
    const long = Array.from({ length: 400 }, (_, index) => `const a${index} = "line ${index} of it";`).join("\n");
    const workflow = one(z.string().max(40_000));
    const big = { maxBytes: 200_000, warnBytes: 200_000 };
    const roomy = {
      ...workflow,
      stateBudget: big,
      state: { value: field(z.string()).maxBytes(100_000).sensitive("personal") },
    };
    const { text } = await shownBy(roomy, [{ next: "b" }], {
      input: { value: long, message: 'why "line 7 of it"; const a9 = "line 9 of it";?' },
    });
    expect(text()).not.toContain("line 9 of it");
    const words = "abc ".repeat(8000);
    const { result } = await shownBy(roomy, [{ next: "b" }], { input: { value: words, message: "go" } });
    expect(result.execution.status).toBe("completed");
  });
});

test("conditions are asked about the real values, whatever the prompt may show", async () => {
  const workflow = defineWorkflow({
    name: "conditions",
    version: 1,
    state: { age: field(z.number()).sensitive("personal"), names: field(z.array(z.string())).sensitive("personal") },
    input: ["age", "names"],
    initial: "a",
    steps: {
      a: {
        to: [
          { to: "b", when: ({ age }) => (age ?? 0) >= 18, because: "not of age" },
          { to: "c", when: ({ names }) => (names ?? []).every((name) => name.length > 9), because: "short names" },
        ],
      },
      b: last,
      c: last,
    },
  });
  const { text } = await shownBy(workflow, [{ next: "b" }], { input: { age: 4242, names: ["x"], message: "go" } });
  expect(text()).toContain("next: b | (c is closed: short names)");
});

test("a text that only looks like what stands for something may be written where nothing is withheld", async () => {
  const workflow = defineWorkflow({
    name: "looks",
    version: 1,
    state: { note: field(z.string()), email: field(z.string()).sensitive("personal") },
    input: ["email"],
    initial: "a",
    steps: { a: { writes: ["note"], to: ["b"] }, b: last },
  });
  const script = [{ patch: { note: "const MARK = '[withheld';" }, next: "b" }];
  const input = { email: EMAIL, message: "go" };
  const { result } = await shownBy(workflow, script, { input, consent: { kinds: { personal: "allow" } } });
  expect(result).toMatchObject({ note: "const MARK = '[withheld';", execution: { refused: 0 } });
});

test("a snapshot that was taken before a field was declared is not shown after it", async () => {
  const store = sqliteStore(":memory:");
  const define = (phone: ReturnType<typeof field<z.ZodString>>) =>
    defineWorkflow({
      name: "declared",
      version: 1,
      state: { email: field(z.string()).sensitive("personal"), phone },
      input: ["email", "phone"],
      initial: "a",
      steps: { a: { to: ["a", "b"] }, b: last },
    });
  const input = { email: EMAIL, phone: "555-0199-77", message: "go" };
  const before = await shownBy(define(field(z.string())), [{ ask: "?" }], { store, input });
  expect(before.text()).toContain("555-0199-77");
  const model = new RemoteModel([{ next: "b" }]);
  const graph = compile(define(field(z.string()).sensitive("personal")), { model, store, consent: { kinds } });
  await graph.invoke(answer(before.result as never, "yes"), config);
  expect(model.prompts[0]).not.toContain("555-0199-77");
});
