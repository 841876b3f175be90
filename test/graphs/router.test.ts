import { readFileSync } from "node:fs";
import {
  answer,
  compile,
  describeTask,
  Memories,
  Memory,
  sqliteStore,
  wakeDue,
  type CompileOptions,
  type MemoryItem,
} from "statecard";
import { scriptedModel, type ScriptedAnswer } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { OfflineRules, type Prompt } from "../../graphs/offline-rules.ts";
import { detectiveView } from "../../graphs/log-detective/workflow.ts";
import { placesGuard } from "../../graphs/router/code-agent/guard.ts";
import { decideRouter } from "../../graphs/router/rules.ts";
import { routerOn } from "../../graphs/router/workflow.ts";
import { mermaidOf } from "../../src/cli/graph.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";
import { statecard } from "../support/cli.ts";
import { onBothDialects } from "../support/stores.ts";

const GARBLED = "Why is the UART output in uart.log sometimes garbled?";
const THRESHOLD = "Where is the FIFO threshold defined?";

/** The rules, with every prompt that they were given. */
class WatchedRules extends OfflineRules {
  readonly prompts: string[] = [];

  constructor() {
    super((prompt: Prompt) => {
      this.prompts.push(prompt.text);
      return decideRouter(prompt);
    });
  }

  /** The prompts of one workflow. */
  of(workflow: string): readonly string[] {
    return promptsOf(this.prompts, workflow);
  }
}

function promptsOf(prompts: readonly string[], workflow: string): readonly string[] {
  return prompts.filter((prompt) => prompt.includes(`of the workflow "${workflow}"`));
}

function openRouter(store: SqlStore = sqliteStore(":memory:"), options: Partial<CompileOptions> = {}) {
  const rules = new WatchedRules();
  const { router, childMemories } = routerOn(store.memory());
  const graph = compile(router, { model: rules, store, childMemories, view: detectiveView, ...options });
  const ask = (message: string, task = "t", user: string | null = "ada") =>
    graph.invoke({ message, user }, { configurable: { thread_id: task } });
  return { graph, rules, store, ask };
}

const memoryOf = (store: SqlStore, agent: string, user = "ada") => new Memory(store.memory(), { user, agent });
const textsOf = (memories: readonly MemoryItem[]) => memories.map(({ text }) => text).join("\n");

test("its README shows its table and what it answers", async () => {
  const readme = readFileSync("graphs/router/README.md", "utf8");
  const { router } = routerOn(sqliteStore(":memory:").memory());
  expect(readme).toContain(mermaidOf(anyWorkflow(router)));
  const { ask } = openRouter();
  expect(readme).toContain((await ask(THRESHOLD)).answer);
});

describe("a request", () => {
  test.each([
    [GARBLED, "log", "answered", "KB-02"],
    ["Which errors are there in uart.log?", "log", "answered", "L29"],
    ["为什么 uart.log 里的串口输出有时乱码？", "log", "answered", "L29"],
    [THRESHOLD, "code", "answered", 'include/uart.h:9: "#define UART_FIFO_THRESHOLD 14u"'],
    ["What does dma_take return when no descriptor is free?", "code", "answered", "src/dma.c:5:"],
    ["代码里在哪里定义了波特率？", "code", "answered", 'include/uart.h:7: "#define UART_BAUD_RATE 921600u"'],
    ["环形缓冲区满了会怎么处理？代码在哪里？", "code", "answered", "src/ring.c:3:"],
    ["Where in the code is the blockchain?", "code", "answered", "does not answer that. I searched for: blockchain"],
    ["What will the weather be like tomorrow?", "other", "declined", "I cannot answer that"],
    ["明天天气怎么样？", "other", "declined", "这个问题我无法回答"],
  ])("%j is about %s", async (message, topic, step, told) => {
    const { ask, rules } = openRouter();
    const done = await ask(message);
    expect(done.answer).toContain(told);
    expect(done).toMatchObject({ topic, execution: { step, status: "completed", refused: 0 } });
    const asked = { log: rules.of("log-agent").length > 0, code: rules.of("code-agent").length > 0 };
    expect(asked).toEqual({ log: topic === "log", code: topic === "code" });
  });

  test.each([
    ["help", "It is about the source code: where is the ring size defined?", "code"],
    ["Is it in the code or in the log?", "The log uart.log", "log"],
    ["有问题，帮我看看", "关于代码：波特率在哪里定义？", "code"],
  ])("%j is not clear: it asks, and goes on with the answer", async (message, reply, topic) => {
    const { graph, ask } = openRouter();
    const paused = await ask(message);
    expect(paused.__interrupt__?.[0]?.value?.requests).toHaveLength(1);
    const done = await graph.invoke(answer(paused, reply), { configurable: { thread_id: "t" } });
    expect(done).toMatchObject({ topic, execution: { step: "answered" } });
  });

  test("that stays unclear is declined after two questions", async () => {
    const { graph, ask } = openRouter();
    const config = { configurable: { thread_id: "t" } };
    const second = await graph.invoke(answer(await ask("help"), "it is broken"), config);
    const done = await graph.invoke(answer(second, "still a problem"), config);
    expect(done).toMatchObject({ topic: "other", execution: { step: "declined" } });
  });

  test("that an agent has to ask about is asked through the router", async () => {
    const { graph, ask } = openRouter();
    const paused = await ask("Why are there errors?");
    const [request] = (await describeTask(graph.runtime.store, "t")).waiting ?? [];
    expect(request?.question).toBe("Which log file is it about?");
    const done = await graph.invoke(answer(paused, "uart.log"), { configurable: { thread_id: "t" } });
    expect(done.execution.step).toBe("answered");
  });

  test("whose agent fails ends with the truth", async () => {
    const model = scriptedModel([
      { patch: { request: THRESHOLD, topic: "code" }, next: "asking_code" },
      ...Array.from({ length: 3 }, () => ({ next: "nowhere" })),
    ]);
    const { ask } = openRouter(sqliteStore(":memory:"), { model });
    expect(await ask("x")).toMatchObject({
      answer: "No answer: the task of the colleague who had the question has failed.",
      execution: { step: "unanswered" },
    });
  });

  test("cannot go to an agent that its topic does not name", async () => {
    const model = scriptedModel([
      { patch: { request: "x", topic: "log" }, next: "asking_code" },
      { patch: { request: "x", topic: "other" }, next: "declining" },
      { patch: { answer: "no" }, reply: "no", next: "declined" },
    ]);
    const done = await openRouter(sqliteStore(":memory:"), { model }).ask("x");
    expect(done.execution).toMatchObject({ step: "declined", refused: 1 });
  });
});

describe("the code agent's answer", () => {
  const state = { lines: ["src/uart.c:12 write_register(0x00u);"] };
  const reply = (text: string) => ({ reply: text, patch: { answer: text } });

  test("passes with a place that was read", () => {
    expect(placesGuard(reply('src/uart.c:12: "write_register(0x00u);"'), state, false)).toBeNull();
  });

  test.each([
    ["src/uart.c:13", "src/uart.c:13 [not in what was read]"],
    ['src/uart.c:12: "write_register(9);"', 'src/uart.c:12: "write_register(9);" [not in what was read]'],
  ])("with %j goes back once and is marked then", (wrong, marked) => {
    expect(placesGuard(reply(wrong), state, false)).toMatchObject({ sendBack: expect.stringContaining("src/uart.c") });
    expect(placesGuard(reply(wrong), state, true)).toEqual({ mend: { reply: marked, patch: { answer: marked } } });
  });

  test("marks the wrong place and not one that begins like it", () => {
    const marked = "See src/uart.c:12 and src/uart.c:1 [not in what was read].";
    expect(placesGuard(reply("See src/uart.c:12 and src/uart.c:1."), state, true)).toMatchObject({
      mend: { reply: marked },
    });
  });

  test("has to name places where there are some", () => {
    expect(placesGuard(reply("Somewhere."), state, false)).toHaveProperty("sendBack");
    expect(placesGuard(reply("Nowhere."), { lines: [] }, false)).toBeNull();
  });
});

test("each agent has its own role, in its own prompts only", async () => {
  const { ask, rules } = openRouter();
  await ask(GARBLED, "one");
  await ask(THRESHOLD, "two");
  const roles = {
    router: "the front desk of",
    "log-agent": "You are a log detective",
    "code-agent": "source code of one project",
  };
  for (const [workflow, identity] of Object.entries(roles)) {
    const prompts = rules.of(workflow);
    expect(prompts.length).toBeGreaterThan(0);
    expect(prompts.every((prompt) => prompt.includes(identity))).toBe(true);
    const others = Object.values(roles).filter((other) => other !== identity);
    expect(prompts.filter((prompt) => others.some((other) => prompt.includes(other)))).toEqual([]);
  }
});

test("preview shows the role, without a key", async () => {
  const { stdout, code } = await statecard(["preview", "router", "--message", "help", "--show"]);
  expect(code).toBe(0);
  expect(stdout).toContain("You are the front desk of a firmware team.");
  expect(stdout).toContain("working advice: Decide by what would have to be read to answer");
});

onBothDialects((dialect) => {
  test("an agent cannot reach what is the other's", async () => {
    const store = dialect.open();
    await openRouter(store).ask(GARBLED, "log-task");
    const logs = memoryOf(store, "log-agent");
    const kept = await logs.list({ limit: 20 });
    expect(textsOf(kept)).toContain("the DMA has no free descriptor");
    const [first] = kept;

    // A code agent that tries everything: other memories, skills, files, and the other's task.
    const results = (prompt: string) => prompt.slice(prompt.lastIndexOf("<observation"));
    const seen: string[] = [];
    const trying =
      (decision: object): ScriptedAnswer =>
      (prompt) => {
        seen.push(results(prompt));
        return decision;
      };
    const call = (tool: string, args: object) => ({ calls: [{ tool, args }] });
    const model = scriptedModel([
      { patch: { request: "the DMA has no free descriptor", topic: "code" }, next: "asking_code" },
      call("recall", { query: "UART garbled DMA descriptor receiver uart.log" }),
      trying(call("forget", { id: first?.id })),
      trying(call("readSkill", { skill: "read-log-file" })),
      trying(call("read-file", { path: "../../../log-detective/logs/uart.log", from: 1 })),
      trying(call("read-log-file", { file: "uart.log" })),
      trying({ next: "answering" }),
      { patch: { answer: "nothing" }, reply: "nothing", next: "done" },
    ]);
    const done = await openRouter(store, { model }).ask("x", "code-task");
    model.assertConsumed();
    expect(done.execution.step).toBe("answered");
    const [recalled, forgotten, skill, file, stranger] = seen;
    expect(recalled).toContain("nothing fits");
    expect(forgotten).toContain("there is no such memory");
    expect(skill).toContain('there is no skill "read-log-file" here');
    expect(file).toContain("the project has no ../../../log-detective/logs/uart.log");
    expect(model.prompts[6]).toContain('UNKNOWN_TOOL: step looking has no tool "read-log-file"');
    expect(stranger).not.toContain("RX overrun");
    // Neither a memory block nor a line of the log, in any of its prompts.
    const prompts = promptsOf(model.prompts, "code-agent");
    expect(prompts).toHaveLength(7);
    for (const prompt of prompts) expect(prompt).not.toMatch(/<memory|RX overrun|KB-02/);
    expect((await logs.list({ limit: 20 })).map(({ id }) => id)).toEqual(kept.map(({ id }) => id));
    expect(await memoryOf(store, "code-agent").list()).toEqual([]);
  });

  test("what an agent remembers is in its own later prompts, and in no other's", async () => {
    const store = dialect.open();
    const { ask, rules } = openRouter(store);
    await ask(THRESHOLD, "first", "eva");
    await ask("Where in the code is the ring size?", "second", "eva");
    await ask(GARBLED, "third", "eva");
    const remembered = `${THRESHOLD} - include/uart.h:9`;
    const withMemory = rules.prompts.filter((prompt) => prompt.includes(remembered));
    expect(withMemory.length).toBeGreaterThan(0);
    expect(promptsOf(withMemory, "code-agent")).toEqual(withMemory);
  });

  test("two users at once remember apart, and nobody's memory is kept where no user is known", async () => {
    const store = dialect.open();
    const { ask, rules } = openRouter(store);
    const ring = "Where in the code is the ring size?";
    await Promise.all([ask(THRESHOLD, "cleo-1", "cleo"), ask(ring, "dan-1", "dan"), ask(THRESHOLD, "nobody-1", null)]);
    const [cleo, dan] = [memoryOf(store, "code-agent", "cleo"), memoryOf(store, "code-agent", "dan")];
    expect(textsOf(await cleo.list())).toBe(`${THRESHOLD} - include/uart.h:9`);
    expect(textsOf(await dan.list())).toContain(ring);
    expect(textsOf(await dan.list())).not.toContain(THRESHOLD);
    rules.prompts.length = 0;
    await Promise.all([ask(ring, "cleo-2", "cleo"), ask(THRESHOLD, "dan-2", "dan"), ask(ring, "nobody-2", null)]);
    const shown = rules.of("code-agent").filter((prompt) => prompt.includes("<memory"));
    expect(shown.some((prompt) => prompt.includes('user: "cleo"'))).toBe(true);
    for (const prompt of shown) {
      const block = /<memory>[\s\S]*?<\/memory>/.exec(prompt)?.[0] ?? "";
      const isCleo = prompt.includes('user: "cleo"');
      expect(block.includes(isCleo ? THRESHOLD : ring)).toBe(true);
      expect(prompt.includes("user: -") || prompt.includes("not set: user")).toBe(false);
    }
  });
});

test("memories of a workflow that is no step are refused", () => {
  const store = sqliteStore(":memory:");
  const { router } = routerOn(store.memory());
  const childMemories = { "code-agnet": new Memories({ store: store.memory(), agent: "code-agent" }) };
  expect(() => compile(router, { store, childMemories })).toThrow(
    'childMemories names "code-agnet", which is no workflow within router; there are: log-agent, code-agent',
  );
});

test("waking up cleans the agents' memories up", async () => {
  const clock = { time: Date.UTC(2026, 10, 30), now: () => clock.time };
  const store = sqliteStore(":memory:", { clock });
  const { graph } = openRouter(store, { clock });
  const memory = memoryOf(store, "code-agent");
  await memory.remember({ type: "fact", text: "passing" });
  await memory.remember({ type: "preference", text: "lasting" });
  clock.time += 25 * 60 * 60 * 1000;
  await wakeDue(graph);
  expect(textsOf(await memory.list())).toBe("lasting");
});
