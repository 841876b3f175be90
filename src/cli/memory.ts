import { isoTime } from "../compile/iso-times.ts";
import { Memory } from "../memory/memory.ts";
import { ownerOf, type MemoryOwner } from "../memory/owner.ts";
import { MEMORY_ROOT, type MemoryItem, type RecalledMemory } from "../memory/value.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { storeForReading } from "./database.ts";
import { EXIT, usage } from "./exit.ts";
import type { CommonOptions, MemoryAction, MemoryCommandOptions } from "./options.ts";
import { print } from "./print.ts";
import { ago, count, detectTerminal, emphasise, lasting, printable, shellWord } from "./terminal.ts";

const DEFAULT_LIMIT = 20;
const MAX_OWNERS = 10_000;

/** `statecard memory`: what is remembered across tasks, for whoever runs the database. */
export async function memoryCommand(
  action: MemoryAction,
  words: readonly string[],
  options: MemoryCommandOptions,
): Promise<number> {
  const store = storeForReading(options.db);
  switch (action) {
    case "list":
      if (words.length > 0) throw usage("memory list takes no words; to look for some: statecard memory search WORDS");
      return isOwned(options) ? listMemories(store, options) : listOwners(store, options);
    case "search":
      return searchMemories(store, words.join(" "), options);
    case "forget":
      return forgetMemory(store, words, options);
    case "clean":
      if (words.length > 0 || isOwned(options)) throw usage("memory clean takes nothing: it cleans up everybody's");
      return cleanUp(store, options);
  }
}

function isOwned({ user, agent }: MemoryOwner): boolean {
  return user !== undefined || agent !== undefined;
}

function memoryOf(store: SqlStore, { user, agent }: MemoryOwner): Memory {
  const owner = { ...(user === undefined ? {} : { user }), ...(agent === undefined ? {} : { agent }) };
  if (isOwned(owner)) return new Memory(store.memory(), owner);
  throw usage("whose memory? name --user, --agent, or both; statecard memory list tells who has one");
}

async function listOwners(store: SqlStore, options: MemoryCommandOptions): Promise<number> {
  const namespaces = await store.memory().listNamespaces({ prefix: [MEMORY_ROOT], limit: MAX_OWNERS });
  const owners = namespaces.flatMap((namespace) => ownerOf(namespace) ?? []);
  const named = (option: string, name: string | undefined) =>
    name === undefined ? [] : [option, shellWord(printable(name))];
  const lines = owners.map(({ user, agent }) =>
    ["  npx statecard memory list", ...named("--user", user), ...named("--agent", agent)].join(" "),
  );
  const head = `${count(owners.length)} ${owners.length === 1 ? "memory" : "memories"}; look into one with:`;
  return print(options, { owners }, lines.length > 0 ? [head, ...lines] : ["Nothing is remembered."]);
}

async function listMemories(store: SqlStore, options: MemoryCommandOptions): Promise<number> {
  const memories = await memoryOf(store, options).list({ limit: limitOf(options) });
  return show(memories, options, "Nothing is remembered.");
}

async function searchMemories(store: SqlStore, query: string, options: MemoryCommandOptions): Promise<number> {
  if (query.trim() === "") throw usage("memory search needs words to look for");
  const found = await memoryOf(store, options).recall({ query, limit: limitOf(options) });
  return show(found, options, "Nothing fits.");
}

async function forgetMemory(store: SqlStore, ids: readonly string[], options: MemoryCommandOptions): Promise<number> {
  const [id, ...more] = ids;
  if (id === undefined || more.length > 0) throw usage("memory forget needs the id of one memory, as list shows it");
  const forgotten = await memoryOf(store, options).forget(id);
  print(options, { id, forgotten }, [
    forgotten ? `Forgotten: ${printable(id)}` : `There is no memory ${printable(id)}.`,
  ]);
  return forgotten ? EXIT.ok : EXIT.refused;
}

async function cleanUp(store: SqlStore, options: MemoryCommandOptions): Promise<number> {
  const deleted = await store.memory().cleanUp();
  return print(options, { deleted }, [`Deleted: ${count(deleted)}.`]);
}

function limitOf({ limit }: MemoryCommandOptions): number {
  if (limit === undefined) return DEFAULT_LIMIT;
  if (!/^[1-9]\d{0,5}$/.test(limit)) throw usage(`--limit has to be a whole number from 1 to 999999, not ${limit}`);
  return Number(limit);
}

function show(memories: readonly (MemoryItem | RecalledMemory)[], options: CommonOptions, none: string): number {
  const now = Date.now();
  const terminal = detectTerminal();
  const lines = memories.flatMap((memory) => {
    const { id, type, priority, updatedAt, expiresAt, taskId, step, skill } = memory;
    const facts = [
      type,
      `priority ${priority}`,
      ...("match" in memory ? [`match ${Math.round(memory.match * 100)} %`] : []),
      `${ago(now - updatedAt)} ago`,
      ...(expiresAt === undefined ? [] : [`for ${lasting(expiresAt - now)} more`]),
      ...(taskId === undefined ? [] : [`by task ${taskId}${step === undefined ? "" : `, step ${step}`}`]),
      ...(skill === undefined ? [] : [`skill ${skill}`]),
    ];
    return [
      emphasise(terminal, "bold", `${printable(id)}  ${printable(facts.join(", "))}`),
      `  ${printable(memory.text)}`,
    ];
  });
  const json = memories.map((memory) => ({
    ...memory,
    createdAt: isoTime(memory.createdAt),
    updatedAt: isoTime(memory.updatedAt),
    ...(memory.expiresAt === undefined ? {} : { expiresAt: isoTime(memory.expiresAt) }),
  }));
  return print(options, { memories: json }, lines.length > 0 ? lines : [none]);
}
