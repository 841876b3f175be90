import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { Embeddings } from "@langchain/core/embeddings";
import { InvalidNamespaceError, type BaseStore, type IndexConfig, type Item } from "@langchain/langgraph-checkpoint";

/** One promise of a LangGraph store, as a check for any test runner. */
export interface MemoryCheck {
  readonly name: string;
  /**
   * @param open a store, new or used: every check has a namespace of its own.
   * @throws AssertionError where the store breaks the promise.
   */
  run(open: (options: { readonly index?: IndexConfig }) => Promise<BaseStore>): Promise<void>;
}

/**
 * What LangGraph expects of every `BaseStore`, for the authors of one: LangGraph has such a suite for
 * checkpointers only. Its own in-memory store passes it. What LangGraph's stores do differently, such as the
 * order of a search without a query, is not checked.
 *
 * @example
 * for (const check of memoryChecks()) test(check.name, () => check.run(async () => sqliteStore(":memory:").memory()));
 */
export function memoryChecks(): readonly MemoryCheck[] {
  return [...items, ...searches, ...namespaces, ...refusals, ...meanings];
}

function check(name: string, body: (store: BaseStore, root: string) => Promise<void>): MemoryCheck {
  return { name, run: async (open) => body(await open({}), `check-${randomUUID()}`) };
}

const keysOf = (found: readonly { readonly key: string }[]) => found.map(({ key }) => key).toSorted();

const items = [
  check("an item comes back as it was put, with its times", async (store, root) => {
    const value = { text: "hi", number: 1.5, yes: true, none: null, list: [1, "two", { three: 3 }], deep: { er: {} } };
    await store.put([root, "a"], "k", value);
    const item = await store.get([root, "a"], "k");
    assert.ok(item);
    assert.deepEqual([item.namespace, item.key, item.value], [[root, "a"], "k", value]);
    assert.ok(item.createdAt instanceof Date && item.updatedAt instanceof Date);
  }),
  check("any text is a key and a value", async (store, root) => {
    for (const text of ["a/b", "a.b:c", "日本語 😀", "line\nbreak", "%2F", "o'hara\"", "\u0001"]) {
      await store.put([root], text, { text, nul: "\u0000" });
      assert.deepEqual((await store.get([root], text))?.value, { text, nul: "\u0000" });
    }
    assert.equal((await store.search([root])).length, 7);
  }),
  check("a second put replaces the value and keeps the time of creation", async (store, root) => {
    await store.put([root], "k", { a: 1 });
    const before = await store.get([root], "k");
    const created = before?.createdAt.getTime();
    await store.put([root], "k", { b: 2 });
    const after = await store.get([root], "k");
    assert.deepEqual(after?.value, { b: 2 });
    assert.equal(after?.createdAt.getTime(), created);
    assert.equal((await store.search([root])).length, 1);
  }),
  check("what is deleted is gone, and deleting nothing is fine", async (store, root) => {
    await store.put([root], "k", { a: 1 });
    await store.put([root], "other", { a: 1 });
    await store.delete([root], "k");
    await store.delete([root], "never");
    assert.equal(await store.get([root], "k"), null);
    assert.deepEqual(keysOf(await store.search([root])), ["other"]);
  }),
  check("the same key in another namespace is another item", async (store, root) => {
    await store.put([root, "a"], "k", { of: "a" });
    await store.put([root, "b"], "k", { of: "b" });
    await store.delete([root, "b"], "k");
    assert.deepEqual((await store.get([root, "a"], "k"))?.value, { of: "a" });
    assert.equal(await store.get([root], "k"), null);
  }),
  check("a batch answers in the order of its operations", async (store, root) => {
    await store.put([root], "old", { n: 1 });
    const [put, got, found, none, listed]: unknown[] = await store.batch([
      { namespace: [root], key: "new", value: { n: 2 } },
      { namespace: [root], key: "old" },
      { namespacePrefix: [root], filter: { n: 1 } },
      { namespace: [root], key: "never" },
      { matchConditions: [{ matchType: "prefix", path: [root] }], limit: 10, offset: 0 },
    ]);
    assert.ok(put === undefined || put === null);
    assert.deepEqual((got as Item | null)?.value, { n: 1 });
    assert.deepEqual(keysOf(found as Item[]), ["old"]);
    assert.equal(none, null);
    assert.deepEqual(listed, [[root]]);
    assert.deepEqual((await store.get([root], "new"))?.value, { n: 2 });
  }),
  check("of several puts of an item in a batch the last one counts", async (store, root) => {
    await store.batch([
      { namespace: [root], key: "k", value: { n: 1 } },
      { namespace: [root], key: "k", value: { n: 2 } },
      { namespace: [root], key: "gone", value: { n: 1 } },
      { namespace: [root], key: "gone", value: null },
    ]);
    assert.deepEqual((await store.get([root], "k"))?.value, { n: 2 });
    assert.equal(await store.get([root], "gone"), null);
  }),
];

const searches = [
  check("a search finds what is in a namespace and below it, and nothing beside it", async (store, root) => {
    for (const [index, namespace] of [[root], [root, "a"], [root, "a", "b"], [root, "ab"], [`${root}a`]].entries()) {
      await store.put(namespace, `k${index}`, { n: index });
    }
    assert.deepEqual(keysOf(await store.search([root])), ["k0", "k1", "k2", "k3"]);
    assert.deepEqual(keysOf(await store.search([root, "a"])), ["k1", "k2"]);
    assert.deepEqual(keysOf(await store.search([root, "a", "b", "c"])), []);
    assert.deepEqual(
      (await store.search([root, "ab"])).map(({ namespace }) => namespace),
      [[root, "ab"]],
    );
  }),
  check("filters compare values", async (store, root) => {
    for (const n of [1, 2, 3]) await store.put([root], `k${n}`, { n, kind: n === 3 ? "odd" : "even" });
    const found = async (filter: Record<string, unknown>) => keysOf(await store.search([root], { filter }));
    assert.deepEqual(await found({ kind: "even" }), ["k1", "k2"]);
    assert.deepEqual(await found({ kind: "even", n: 2 }), ["k2"]);
    assert.deepEqual(await found({ n: { $gt: 1 } }), ["k2", "k3"]);
    assert.deepEqual(await found({ n: { $gte: 2, $lt: 3 } }), ["k2"]);
    assert.deepEqual(await found({ n: { $lte: 1 } }), ["k1"]);
    assert.deepEqual(await found({ n: { $eq: 3 } }), ["k3"]);
    assert.deepEqual(await found({ kind: { $ne: "even" } }), ["k3"]);
    assert.deepEqual(await found({ missing: "x" }), []);
    assert.deepEqual(await found({}), ["k1", "k2", "k3"]);
  }),
  check("a search gives ten items unless told, and pages cover all of them once", async (store, root) => {
    for (let n = 0; n < 25; n++) await store.put([root], `k${n}`, { n });
    assert.equal((await store.search([root])).length, 10);
    const pages = await Promise.all([0, 10, 20].map((offset) => store.search([root], { limit: 10, offset })));
    assert.deepEqual(
      pages.map((page) => page.length),
      [10, 10, 5],
    );
    assert.equal(new Set(pages.flat().map(({ key }) => key)).size, 25);
    assert.deepEqual(await store.search([root], { offset: 25 }), []);
  }),
];

const namespaces = [
  check("namespaces are listed by prefix, suffix and depth, each once and in order", async (store, root) => {
    for (const path of [["a", "x", "v1"], ["a", "y", "v2"], ["b", "x", "v1"], ["b"]]) {
      await store.put([root, ...path], "k1", { n: 1 });
      await store.put([root, ...path], "k2", { n: 1 });
    }
    const list = async (options: Parameters<BaseStore["listNamespaces"]>[0]) =>
      (await store.listNamespaces(options)).map((path) => path.slice(1).join("/"));
    assert.deepEqual(await list({ prefix: [root] }), ["a/x/v1", "a/y/v2", "b", "b/x/v1"]);
    assert.deepEqual(await list({ prefix: [root, "a"] }), ["a/x/v1", "a/y/v2"]);
    assert.deepEqual(await list({ prefix: [root], suffix: ["v1"] }), ["a/x/v1", "b/x/v1"]);
    assert.deepEqual(await list({ prefix: [root, "*", "x"] }), ["a/x/v1", "b/x/v1"]);
    assert.deepEqual(await list({ prefix: [root], maxDepth: 2 }), ["a", "b"]);
    assert.deepEqual(await list({ prefix: [root], limit: 2, offset: 1 }), ["a/y/v2", "b"]);
    assert.deepEqual(await list({ prefix: [root, "c"] }), []);
  }),
];

const refusals = [
  check("a put into a namespace that is none is refused", async (store, root) => {
    const bad: unknown[][] = [[], [""], [root, ""], ["a.b"], ["a:b"], ["a\0b"], [root, 5], ["langgraph"]];
    for (const namespace of bad) {
      await assert.rejects(
        async () => store.put(namespace as string[], "k", { n: 1 }),
        (error) => error instanceof InvalidNamespaceError,
        `expected a refusal of ${JSON.stringify(namespace)}`,
      );
    }
  }),
];

/** Places texts by three words that they may hold: enough to tell what is close. */
class WordEmbeddings extends Embeddings {
  constructor() {
    super({});
  }

  override async embedQuery(text: string): Promise<number[]> {
    return ["cat", "dog", "car"].map((word) => text.split(word).length - 1);
  }

  override embedDocuments(texts: string[]): Promise<number[][]> {
    return Promise.all(texts.map((text) => this.embedQuery(text)));
  }
}

const index = (fields?: string[]): IndexConfig => ({
  dims: 3,
  embeddings: new WordEmbeddings(),
  ...(fields ? { fields } : {}),
});

const meanings: readonly MemoryCheck[] = [
  {
    name: "with embeddings, what means the most similar comes first, with its score",
    async run(open) {
      const [store, root] = [await open({ index: index() }), `check-${randomUUID()}`];
      await store.put([root], "cats", { text: "cat cat" });
      await store.put([root], "pets", { text: "cat dog" });
      await store.put([root], "cars", { text: "car" });
      const found = await store.search([root], { query: "cat", limit: 2 });
      assert.deepEqual(
        found.map(({ key }) => key),
        ["cats", "pets"],
      );
      assert.ok((found[0]?.score ?? 0) > (found[1]?.score ?? 0));
      assert.deepEqual(keysOf(await store.search([root], { query: "cat", limit: 1, offset: 1 })), ["pets"]);
      assert.deepEqual(keysOf(await store.search([root], { query: "cat", filter: { text: "car" } })), ["cars"]);
    },
  },
  {
    name: "with embeddings, an item counts by the fields that it is indexed by",
    async run(open) {
      const [store, root] = [await open({ index: index(["title", "parts[*].text"]) }), `check-${randomUUID()}`];
      await store.put([root], "title", { title: "cat", other: "dog dog" });
      await store.put([root], "part", { title: "car", parts: [{ text: "car" }, { text: "dog" }] });
      await store.put([root], "own", { title: "cat", note: "dog" }, ["note"]);
      await store.put([root], "none", { title: "dog" }, false);
      const found = await store.search([root], { query: "dog", limit: 10 });
      assert.deepEqual(keysOf(found.slice(0, 2)), ["own", "part"]);
      assert.deepEqual(keysOf(found), ["none", "own", "part", "title"]);
      assert.equal(found.find(({ key }) => key === "none")?.score, undefined);
    },
  },
];
