import type { IndexConfig } from "@langchain/langgraph-checkpoint";
import { WorkflowError } from "../errors.ts";
import { within, type Place } from "./memory-search.ts";
import type { Sql } from "./sql.ts";

const PAGE = 1000;

/** How close an item is to a query, by what it means. */
export interface Similar {
  readonly namespace: string;
  readonly key: string;
  /** The cosine. */
  readonly score: number;
}

/** Embeds texts. */
export async function embed(index: IndexConfig, texts: readonly string[]): Promise<readonly Float32Array[]> {
  if (texts.length === 0) return [];
  return (await index.embeddings.embedDocuments([...texts])).map((vector) => checked(index, vector));
}

/**
 * The items that mean the most similar, the best first; an item with several vectors counts by its closest. It
 * compares all vectors of the place, so for very many a database of vectors serves better.
 */
export async function searchVectors(
  sql: Sql,
  place: Place,
  index: IndexConfig,
  query: string,
): Promise<readonly Similar[]> {
  const wanted = checked(index, await index.embeddings.embedQuery(query));
  const best = new Map<string, Similar>();
  const [condition, ...values] = within(place);
  for (let offset = 0; ; offset += PAGE) {
    const rows = await sql.all<{ namespace: string; key: string; vector: Uint8Array }>(
      `select namespace, key, vector from statecard_memory_vectors where ${condition}
       order by namespace, key, field limit ${PAGE} offset ?`,
      ...values,
      offset,
    );
    for (const { namespace, key, vector } of rows) {
      const score = cosine(wanted, floats(vector));
      const id = namespace + key;
      if (score > (best.get(id)?.score ?? -Infinity)) best.set(id, { namespace, key, score });
    }
    if (rows.length < PAGE) break;
  }
  return [...best.values()].toSorted((a, b) => b.score - a.score);
}

function checked({ dims }: IndexConfig, vector: readonly number[]): Float32Array {
  if (vector.length === dims) return Float32Array.from(vector);
  throw new WorkflowError(
    "INVALID_OPTIONS",
    `the embeddings have ${vector.length} dimensions and the memory's index is declared with ${dims}`,
  );
}

/** The bytes of a row stand anywhere in their buffer; floats need their place. */
function floats(bytes: Uint8Array): Float32Array {
  return new Float32Array(Uint8Array.from(bytes).buffer);
}

/** 0 for vectors of other embeddings than those now used. */
function cosine(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length) return 0;
  let [dot, left, right] = [0, 0, 0];
  for (let index = 0; index < a.length; index++) {
    const [x = 0, y = 0] = [a[index], b[index]];
    dot += x * y;
    left += x * x;
    right += y * y;
  }
  return left > 0 && right > 0 ? dot / Math.sqrt(left * right) : 0;
}
