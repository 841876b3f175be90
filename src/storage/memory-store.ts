import {
  BaseStore,
  validateNamespace,
  type IndexConfig,
  type Item,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
} from "@langchain/langgraph-checkpoint";
import type { Clock } from "../internal/clock.ts";
import { notJson } from "../internal/json.ts";
import { redactDeep } from "../internal/redact.ts";
import { WorkflowError } from "../errors.ts";
import type { MemoryList, MemoryQuery, MemoryStore } from "../memory/store.ts";
import { MEMORY_ROOT, memoryIn } from "../memory/value.ts";
import { queryWords } from "../internal/words.ts";
import { namespacesFor, passes } from "./memory-filter.ts";
import { keyIn, namespaceIn, pathOf, storedKey } from "./memory-path.ts";
import { ALIVE, COLUMNS, deleteRow, readRow, toItem, writeRow, type MemoryRow, type NewRow } from "./memory-rows.ts";
import { allRows, inOrder, readRows, searchWords, type Place, type ScoredRow } from "./memory-search.ts";
import { allTexts, textsAt } from "./memory-text.ts";
import { embed, searchVectors } from "./memory-vectors.ts";
import { first, type Database, type Sql } from "./sql.ts";

export interface MemoryStoreOptions {
  /** Embeddings for finding by meaning too, as LangGraph's stores take them; by words only unless set. */
  readonly index?: IndexConfig;
}

/** How long memories of priority 0 and 1 stay after they were last written. */
const PASSING_MS = 24 * 60 * 60 * 1000;
const CLEAN_UP_PAGE = 200;

/** A LangGraph store in a SQL database, with what memories need on top; `store.memory()` makes one. */
export class SqlMemoryStore extends BaseStore implements MemoryStore {
  private readonly sql: Database;
  private readonly clock: Clock;
  private readonly index: IndexConfig | undefined;

  constructor(sql: Database, clock: Clock, { index }: MemoryStoreOptions = {}) {
    super();
    this.sql = sql;
    this.clock = clock;
    this.index = index;
  }

  now(): number {
    return this.clock.now();
  }

  /** All of a batch's writes are one transaction; its reads see what was there before. */
  override async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const puts = new Map<string, PutOperation>();
    const results: unknown[] = [];
    for (const operation of operations) {
      if ("value" in operation) {
        // The last one counts where several write the same item.
        puts.set(`${pathOf(operation.namespace)}${storedKey(operation.key)}`, operation);
        results.push(undefined);
      } else results.push(await this.read(operation));
    }
    if (puts.size > 0) await this.writeAll([...puts.values()]);
    return results as OperationResults<Op>;
  }

  private read(operation: Exclude<Operation, PutOperation>): Promise<unknown> {
    if ("namespacePrefix" in operation) return this.searchPrefix(operation);
    if ("key" in operation) return this.getItem(operation.namespace, operation.key);
    return this.namespaces().then((all) => namespacesFor(operation, all));
  }

  private async getItem(namespace: string[], key: string): Promise<Item | null> {
    const row = await readRow(this.sql, pathOf(namespace, true), key, this.clock.now());
    return row && toItem(row);
  }

  private async namespaces(): Promise<readonly string[][]> {
    const rows = await this.sql.all<{ namespace: string }>(
      `select distinct namespace from statecard_memory where ${ALIVE}`,
      this.clock.now(),
    );
    return rows.map(({ namespace }) => namespaceIn(namespace));
  }

  private async searchPrefix({
    namespacePrefix,
    filter,
    limit = 10,
    offset = 0,
    query,
  }: SearchOperation): Promise<SearchItem[]> {
    const place = { path: pathOf(namespacePrefix, true), isExact: false };
    const found: SearchItem[] = [];
    const take = (row: MemoryRow, score?: number) => {
      const item = toItem(row);
      if (passes(item.value, filter)) found.push(score === undefined ? item : { ...item, score });
      return found.length < offset + limit;
    };
    if (query) {
      const ranked = this.index ? await this.byMeaning(place, query) : await this.byWords(place, query);
      for (const { row, score } of ranked) if (!take(row, score)) break;
      // As in LangGraph's own store: what has no vector cannot be compared, and comes last.
      if (!this.index) return found.slice(offset);
    }
    const seen = new Set(found.map(idOf));
    if (found.length < offset + limit) {
      for await (const row of allRows(this.sql, place, this.clock.now())) {
        if (!seen.has(idOf(toItem(row))) && !take(row)) break;
      }
    }
    return found.slice(offset, offset + limit);
  }

  private byWords(place: Place, query: string): Promise<readonly ScoredRow[]> {
    return searchWords(this.sql, place, queryWords(query), this.clock.now());
  }

  private async byMeaning(place: Place, query: string): Promise<readonly ScoredRow[]> {
    if (!this.index) return [];
    const similar = await searchVectors(this.sql, place, this.index, query);
    const scores = new Map(similar.map(({ namespace, key, score }) => [namespace + key, score]));
    const rows = await readRows(this.sql, similar, this.clock.now());
    return rows.map((row) => ({ row, score: scores.get(row.namespace + row.key) ?? 0 })).toSorted(inOrder);
  }

  async write(namespace: string[], key: string, value: Record<string, unknown>): Promise<{ readonly isNew: boolean }> {
    validateNamespace(namespace);
    const [isNew = true] = await this.writeAll([{ namespace, key, value }]);
    return { isNew };
  }

  private async writeAll(puts: readonly PutOperation[]): Promise<readonly boolean[]> {
    const rows: (NewRow | { readonly path: string; readonly key: string })[] = [];
    // Embedding takes long, so it is done before anything is locked.
    for (const put of puts) rows.push(await this.rowFor(put));
    const paths = new Set(rows.map(({ path }) => path));
    const lock = paths.size === 1 ? lockName(rows[0]?.path ?? "") : undefined;
    return this.sql.transaction(async (sql) => {
      const now = this.clock.now();
      const written: boolean[] = [];
      for (const row of rows) {
        written.push("value" in row ? await writeRow(sql, row, now) : await removeItem(sql, row.path, row.key));
      }
      return written;
    }, lock);
  }

  private async rowFor({ namespace, key, value, index }: PutOperation) {
    const path = pathOf(namespace);
    if (value === null) return { path, key };
    const problem = notJson(value);
    if (problem) throw new WorkflowError("INVALID_OPTIONS", `item ${key} cannot be stored: ${problem}`);
    const clean = redactDeep(value);
    const memory = namespace[0] === MEMORY_ROOT ? memoryIn(clean) : null;
    const fields = index ?? (memory ? ["text"] : this.index?.fields);
    const places = fields === false ? [] : (fields ?? ["$"]).flatMap((field) => textsAt(clean, field));
    const vectors = this.index
      ? await embed(
          this.index,
          places.map(({ text }) => text),
        )
      : [];
    const named = Array.isArray(index) || memory ? places.map(({ text }) => text).join("\n") : allTexts(clean);
    return {
      path,
      key,
      value: clean,
      text: index === false ? "" : named,
      type: memory?.type ?? null,
      priority: memory?.priority ?? 0,
      expiresAt: memory?.expiresAt ?? null,
      vectors: vectors.map((vector, at) => ({ field: places[at]?.field ?? "", vector })),
    };
  }

  async list(namespace: string[], { order, limit, type }: MemoryList): Promise<readonly Item[]> {
    const sorted = order === "newest" ? "updated_at desc, key desc" : "priority desc, updated_at desc, key desc";
    const ofType = type === undefined ? "" : "and type = ?";
    const rows = await this.sql.all<MemoryRow>(
      `select ${COLUMNS} from statecard_memory where namespace = ? and ${ALIVE} ${ofType} order by ${sorted} limit ?`,
      pathOf(namespace),
      this.clock.now(),
      ...(type === undefined ? [] : [type]),
      limit,
    );
    return rows.map(toItem);
  }

  async recall(namespace: string[], { query, limit, threshold, type }: MemoryQuery): Promise<readonly SearchItem[]> {
    const place = { path: pathOf(namespace), isExact: true };
    const found = new Map<string, ScoredRow>();
    for (const one of [...(await this.byWords(place, query)), ...(await this.byMeaning(place, query))]) {
      // It fits as well as its words or its meaning do, whichever is more.
      if (one.score > (found.get(one.row.key)?.score ?? 0)) found.set(one.row.key, one);
    }
    return [...found.values()]
      .toSorted(inOrder)
      .filter(({ score }) => score >= threshold)
      .map(({ row, score }) => ({ ...toItem(row), score }))
      .filter(({ value }) => type === undefined || value.type === type)
      .slice(0, limit);
  }

  async remove(namespace: string[], key: string): Promise<boolean> {
    const path = pathOf(namespace);
    return this.sql.transaction((sql) => removeItem(sql, path, key), lockName(path));
  }

  async cleanUp(namespace?: string[]): Promise<number> {
    const now = this.clock.now();
    const here = namespace === undefined ? "" : "namespace = ? and";
    const where = [...(namespace === undefined ? [] : [pathOf(namespace)]), now, now - PASSING_MS];
    for (let deleted = 0; ;) {
      const rows = await this.sql.all<MemoryRow>(
        `select ${COLUMNS} from statecard_memory where ${here}
           (expires_at <= ? or (type is not null and priority in (0, 1) and updated_at <= ?)) limit ${CLEAN_UP_PAGE}`,
        ...where,
      );
      for (const path of new Set(rows.map((row) => row.namespace))) {
        deleted += await this.deleteUnchanged(
          path,
          rows.filter((row) => row.namespace === path),
        );
      }
      if (rows.length < CLEAN_UP_PAGE) return deleted;
    }
  }

  /** Deletes rows of a namespace, but none that somebody has written anew since they were read. */
  private deleteUnchanged(path: string, rows: readonly MemoryRow[]): Promise<number> {
    return this.sql.transaction(async (sql) => {
      let deleted = 0;
      for (const { key, updated_at: updatedAt } of rows) {
        if (await removeItem(sql, path, keyIn(key), updatedAt)) deleted++;
      }
      return deleted;
    }, lockName(path));
  }
}

function idOf({ namespace, key }: Item): string {
  return JSON.stringify([namespace, key]);
}

/** What two writers of a namespace lock, so that one of them sees what the other has written. */
function lockName(path: string): string {
  return `memory ${path}`;
}

async function removeItem(sql: Sql, path: string, key: string, writtenAt?: number): Promise<boolean> {
  const row = await first<MemoryRow>(
    sql,
    `select ${COLUMNS} from statecard_memory where namespace = ? and key = ?`,
    path,
    storedKey(key),
  );
  if (!row || (writtenAt !== undefined && row.updated_at !== writtenAt)) return false;
  await deleteRow(sql, row);
  return true;
}
