import { Command, MemorySaver, StateGraph, Annotation, START, END } from "@langchain/langgraph";
import { compile, defineWorkflow, field, sqliteStore } from "statecard";
import { it } from "vitest";
import { z } from "zod";
const log = (...a: any[]) => process.stderr.write(a.map((x) => typeof x === "string" ? x : JSON.stringify(x)).join(" ").slice(0, 1500) + "\n");
const N = 30;
const wf = defineWorkflow({ name: "w", version: 1, maxDecisions: 1000, state: { n: field(z.number()) }, initial: "a", steps: { a: { maxDecisions: 1000, run: (s: any) => ({ patch: { n: (s.n ?? 0) + 1 }, next: (s.n ?? 0) + 1 >= N ? "done" : "a" }) as any, to: ["a", "done"] }, done: { final: true } } });
const mk = () => compile(wf, { store: sqliteStore(":memory:") });
it("x", async () => {
  {
    const g = mk(); const c = { configurable: { thread_id: "t" } };
    const s = await g.stream({ message: "hi" }, c); void s;
    for (const ms of [200, 1000, 2000]) { await new Promise((r) => setTimeout(r, ms));
    log("never read: ", (await g.getState(c)).values.n, await g.runtime.store.acquire("t").then(async (l: any) => { await g.runtime.store.release(l); return "free"; }, (e) => e.code)); }
  }
  {
    const g = mk(); const c = { configurable: { thread_id: "t" } };
    const s: any = await g.stream({ message: "hi" }, { ...c, streamMode: "updates" });
    for await (const x of s) { void x; break; }
    for (const ms of [0, 50, 200, 1000]) { await new Promise((r) => setTimeout(r, ms));
    log("break: ", (await g.getState(c)).values.n, await g.runtime.store.acquire("t").then(async (l: any) => { await g.runtime.store.release(l); return "free"; }, (e) => e.code)); }
  }
  {
    const S = Annotation.Root({ x: Annotation<number>() });
    const p = new StateGraph(S).addNode("a", () => ({ x: 1 })).addEdge(START, "a").addEdge("a", END).compile({ checkpointer: new MemorySaver() });
    const w: any = p.withConfig({ configurable: { thread_id: "wc" } });
    log("plain merge", await w.invoke({ x: 0 }, { configurable: { a: 1 } }).then((r: any) => r, (e: any) => e.message));
    log("plain gs", await w.getState({ configurable: {} }).then((r: any) => r.values, (e: any) => e.message));
    log("plain up", await w.updateState({ configurable: {} }, { x: 3 }).then((r: any) => r, (e: any) => e.message));
    const u: any = mk().withConfig({ configurable: { thread_id: "wc" } } as any);
    log("ours", await u.invoke({ message: "x" }).then((r: any) => r.n, (e: any) => e.message));
    log("ours gs", await u.getState({ configurable: {} }).then((r: any) => r.values, (e: any) => e.message));
    log("ours up", await u.updateState({ configurable: {} }, { n: 3 }).then((r: any) => r, (e: any) => e.message));
    log("ours gs", await u.getState({}).then((r: any) => r.values, (e: any) => e.message));
  }
});
