import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Memory, sqliteStore, type MemoryStore } from "../src/index.ts";
import { namespaceOf } from "../src/memory/owner.ts";
import { memoryId } from "../src/memory/value.ts";
import { matchOf, queryWords, wordsOf } from "../src/internal/words.ts";
import { median } from "./measure.ts";
import { randomFrom } from "./random.ts";
import type { Report, Table } from "./report.ts";

const SEED = 20_261_130;
const MEMORIES = 100_000;
const BATCH = 2000;
const VOCABULARY = 20_000;
const RECALLS = 200;
/** How many recalls of each kind are compared with a look at every memory, which takes long. */
const COMPARED = 20;
/** Words that more memories hold count as common, see src/storage/memory-search.ts. */
const COMMON = 1000;
const SHOWN = 5;
const TARGET_MS = 10;
const OWNER = { user: "one user" };

interface Written {
  readonly id: string;
  readonly text: string;
  readonly priority: number;
  readonly words: ReadonlySet<string>;
}

/** What is asked, and how often what it was asked for should come back. */
interface Kind {
  readonly name: string;
  query(memory: Written): string;
}

const KINDS: readonly Kind[] = [
  { name: "three words of a memory", query: ({ text }) => rarest(text).slice(0, 3).join(" ") },
  { name: "six words of a memory", query: ({ text }) => text.split(" ").slice(0, 6).join(" ") },
  { name: "its three most common words", query: ({ text }) => rarest(text).slice(-3).join(" ") },
  {
    name: "a question of twelve words",
    query: ({ text }) => `${text.split(" ").slice(0, 7).join(" ")} w1 w2 w3 w4 w5`,
  },
  { name: "words that nothing holds", query: () => "zzyzx qwrtp vbnml" },
];

/** Words by how rare they are: the vocabulary's numbers follow how often they are used. */
function rarest(text: string): readonly string[] {
  const rank = (word: string) => Number(word.slice(1));
  return [...new Set(text.split(" "))].toSorted((a, b) => rank(b) - rank(a));
}

/** 100,000 memories of one user: what a recall costs, and whether it finds what a look at all of them finds. */
export async function run(): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), "statecard-bench-"));
  const file = join(folder, "memory.db");
  const store = sqliteStore(file);
  try {
    const random = randomFrom(SEED);
    const startedAt = performance.now();
    const written = await fill(store.memory(), random);
    const fillMs = performance.now() - startedAt;
    const memory = new Memory(store.memory(), OWNER);
    const kinds = [];
    for (const kind of KINDS) kinds.push(await recallTimes(memory, kind, written, random));
    const others = await otherTimes(memory, random);
    const all = median(kinds.flatMap(({ times }) => times));
    const table: Table = {
      title: "Recall among 100,000 memories of one owner",
      columns: [
        "query",
        "median ms",
        "slowest of 20",
        "the same five as a look at every memory",
        "the memory asked for is among them",
      ],
      rows: kinds.map(({ name, times, same, found }) => [
        name,
        round(median(times)),
        round(quantile(times, 0.95)),
        percent(same),
        percent(found),
      ]),
      note: "Words are as frequent as in natural language (Zipf). A word that more than 1,000 of the memories hold is left out unless the query has no other. With common words alone, only memories of the highest priority, and then the newest, are looked at.",
    };
    const other: Table = {
      title: "Everything else",
      columns: ["what", "median ms"],
      rows: [
        ...others.map(({ name, times }): [string, number] => [name, round(median(times))]),
        ["write one of many in a batch", round(fillMs / MEMORIES)],
      ],
      note: `The file has ${Math.round(statSync(file).size / 1e6)} MB.`,
    };
    return {
      name: "memory",
      title: "recall among 100,000 memories",
      summary: `A recall of five memories out of ${MEMORIES.toLocaleString("en-US")} takes ${round(all)} ms in the median over all kinds of queries.`,
      seed: SEED,
      settings: { memories: MEMORIES, "words in the vocabulary": VOCABULARY, "recalls of each kind": RECALLS },
      tables: [table, other],
      limits: kinds.map(({ name, times }) => ({
        promise: `median of a recall by ${name}, in milliseconds`,
        value: round(median(times)),
        limit: TARGET_MS,
      })),
      notShown: [
        "The texts are random words: how well people's questions find people's notes is not measured here.",
        "SQLite on one machine, with a warm file cache; PostgreSQL adds a round trip for each word and page.",
        "Searching by meaning compares all vectors of an owner, and is not measured here.",
      ],
      raw: { kinds, others, fillMs },
    };
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function fill(store: MemoryStore, random: () => number): Promise<readonly Written[]> {
  const namespace = namespaceOf(OWNER);
  const written: Written[] = [];
  while (written.length < MEMORIES) {
    const batch = Array.from({ length: BATCH }, (): Written => {
      const text = Array.from({ length: 8 + Math.floor(random() * 8) }, () => `w${zipf(random)}`).join(" ");
      const priority = Math.floor(random() * 6);
      return { id: memoryId({ type: "fact", text }), text, priority, words: new Set(wordsOf(text)) };
    });
    await store.batch(
      batch.map(({ id, text, priority }) => ({ namespace, key: id, value: { type: "fact", text, priority } })),
    );
    written.push(...batch);
  }
  return written;
}

/** A word's number: the n-th most frequent word is used about 1/n as often as the first. */
function zipf(random: () => number): number {
  return Math.floor(VOCABULARY ** random());
}

async function recallTimes(memory: Memory, kind: Kind, written: readonly Written[], random: () => number) {
  const times: number[] = [];
  let [same, found, compared] = [0, 0, 0];
  for (let index = 0; index < RECALLS; index++) {
    const wanted = written[Math.floor(random() * written.length)];
    if (!wanted) continue;
    const query = kind.query(wanted);
    const startedAt = performance.now();
    const recalled = await memory.recall({ query, limit: SHOWN });
    times.push(performance.now() - startedAt);
    if (recalled.some(({ id }) => id === wanted.id)) found++;
    if (index >= COMPARED) continue;
    compared++;
    const matches = recalled.map(({ match, priority }) => [match, priority]);
    if (JSON.stringify(matches) === JSON.stringify(bestOf(query, written))) same++;
  }
  return { name: kind.name, times, same: same / compared, found: found / RECALLS };
}

/** Match and priority of what a look at every memory finds; equal ones differ only in their time. */
function bestOf(query: string, written: readonly Written[]): readonly (readonly [match: number, priority: number])[] {
  const all = queryWords(query);
  const holders = (word: string) => written.reduce((sum, memory) => sum + (memory.words.has(word) ? 1 : 0), 0);
  const telling = all.filter(({ grams }) => grams.some((gram) => holders(gram) <= COMMON));
  const words = telling.length > 0 ? telling : all;
  return written
    .map(({ words: own, priority }) => [matchOf(words, own), priority] as const)
    .filter(([match]) => match >= 0.3)
    .toSorted((a, b) => b[0] - a[0] || b[1] - a[1])
    .slice(0, SHOWN);
}

async function otherTimes(memory: Memory, random: () => number) {
  const timed = async (name: string, work: (index: number) => Promise<unknown>) => {
    const times: number[] = [];
    for (let index = 0; index < 100; index++) {
      const startedAt = performance.now();
      await work(index);
      times.push(performance.now() - startedAt);
    }
    return { name, times };
  };
  return [
    await timed("the memory block of a view", () => memory.block()),
    await timed("remember one", (index) =>
      memory.remember({
        type: "fact",
        text: `note ${index} w${zipf(random)} w${zipf(random)} w${zipf(random)}`,
        priority: 2,
      }),
    ),
    await timed("list the twenty newest", () => memory.list()),
    await timed("clean up where nothing is to be done", () => memory.cleanUp()),
  ];
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
