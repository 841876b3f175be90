import { Memory, sqliteStore, type MemoryOwner } from "statecard";
import { expect, test } from "vitest";
import { ISO_TIME, jsonOf, ownDatabase, projectFolder, shareOneProcess, statecard } from "../support/cli.ts";

shareOneProcess();

const DAY = 24 * 60 * 60 * 1000;
const ann = { user: "ann@example.com" };
const coder = { user: "ann@example.com", agent: "coder" };

/** A database in which two owners have memories. */
async function remembered() {
  const own = await ownDatabase();
  const clock = { now: () => Date.now() - 2 * DAY };
  const [now, before] = [sqliteStore(own.database), sqliteStore(own.database, { clock })];
  const write = (owner: MemoryOwner, text: string, type: "fact" | "preference", store = now) =>
    new Memory(store.memory(), owner).remember({ type, text, taskId: "t-1", step: "talking" });
  await write(ann, "Passing: the lift is broken.", "fact", before);
  await write(ann, "Prefers tea in the cellar.\u001B[31m", "preference");
  await write(coder, "Tabs.", "preference");
  await Promise.all([now.close(), before.close()]);
  return (...args: string[]) => statecard(["memory", ...args], own);
}

test("who has memories is listed, with the command that shows them", async () => {
  const memory = await remembered();
  const { code, stdout } = await memory("list");
  expect([code, stdout.split("\n")]).toEqual([
    0,
    [
      "2 memories; look into one with:",
      "  npx statecard memory list --user ann@example.com",
      "  npx statecard memory list --user ann@example.com --agent coder",
      "",
    ],
  ]);
  expect(jsonOf(await memory("list", "--json"))).toEqual({ owners: [ann, coder] });
});

test("somebody's memories are listed and searched, and nobody else's", async () => {
  const memory = await remembered();
  const listed = (await memory("list", "--user", ann.user)).stdout.split("\n");
  expect(listed[0]).toMatch(/^[\w-]{22} {2}preference, priority 5, \d+ s ago, by task t-1, step talking$/);
  expect(listed[1]).toBe("  Prefers tea in the cellar. [31m");
  expect(listed).toHaveLength(5);
  const found = await memory("search", "cellar", "tea", "--user", ann.user);
  expect(found.stdout).toMatch(/match 100 %/);
  expect(found.stdout).not.toContain("lift");
  expect((await memory("search", "tabs", "--user", ann.user)).stdout).toBe("Nothing fits.\n");
  expect((await memory("list", "--user", "bob")).stdout).toBe("Nothing is remembered.\n");
  expect(jsonOf(await memory("list", "--user", ann.user, "--agent", "coder", "--json"))).toMatchObject({
    memories: [
      { text: "Tabs.", createdAt: expect.stringMatching(ISO_TIME), updatedAt: expect.stringMatching(ISO_TIME) },
    ],
  });
});

test("a memory is forgotten by its id, of its owner only", async () => {
  const memory = await remembered();
  const { memories } = jsonOf(await memory("list", "--user", ann.user, "--json")) as { memories: { id: string }[] };
  const id = memories[0]?.id ?? "";
  expect(await memory("forget", id, "--user", "bob")).toMatchObject({ code: 3, stdout: `There is no memory ${id}.\n` });
  expect(await memory("forget", id, "--user", ann.user)).toMatchObject({ code: 0, stdout: `Forgotten: ${id}\n` });
  expect(await memory("forget", id, "--user", ann.user)).toMatchObject({ code: 3 });
});

test("cleaning up deletes passing memories of the day before", async () => {
  const memory = await remembered();
  expect((await memory("clean")).stdout).toBe("Deleted: 1.\n");
  expect((await memory("clean")).stdout).toBe("Deleted: 0.\n");
  expect((await memory("list", "--user", ann.user)).stdout).not.toContain("lift");
});

test("wrong use is refused with advice", async () => {
  const memory = await remembered();
  const wrong: readonly (readonly [args: string[], says: string])[] = [
    [["list", "tea", "--user", "ann"], "statecard memory search WORDS"],
    [["search", "tea"], "whose memory?"],
    [["search", "--user", "ann"], "needs words"],
    [["forget", "--user", "ann"], "needs the id"],
    [["forget", "a", "b", "--user", "ann"], "needs the id"],
    [["forget", "a"], "whose memory?"],
    [["clean", "--user", "ann"], "cleans up everybody's"],
    [["list", "--user", "ann", "--limit", "many"], "--limit has to be"],
    [["list", "--user", ""], "1 to 200 characters"],
    [["remember", "x"], "Allowed choices are list, search, forget, clean"],
  ];
  for (const [args, says] of wrong) {
    const result = await memory(...args);
    expect(result, args.join(" ")).toMatchObject({ code: 2, stdout: "" });
    expect(result.stderr).toContain(says);
  }
});

test("a database that is not there is empty and is not made", async () => {
  const own = await ownDatabase();
  expect(await statecard(["memory", "list"], own)).toMatchObject({ code: 0, stdout: "Nothing is remembered.\n" });
});

test("a preview shows the memory block of the task's owner", async () => {
  const folder = await projectFolder({
    "graph.mjs": `
      import { compile, defineWorkflow, Memories, Memory, sqliteStore } from "statecard";
      const store = sqliteStore("memories.db");
      const memories = new Memories({ store: store.memory(), user: "ann" });
      await new Memory(store.memory(), { user: "ann" }).remember({ type: "preference", text: "Prefers tea." });
      const steps = { talking: { to: ["talking", "done"] }, done: { final: true } };
      const workflow = defineWorkflow({ name: "tea", version: 1, state: {}, initial: "talking", steps });
      export const graph = compile(workflow, { memories });`,
  });
  const { stdout, stderr } = await statecard(["preview", "graph.mjs", "--show"], { folder });
  expect(stderr).toBe("");
  expect(stdout).toMatch(
    /--- memory ---\n<memory>\n.*\n- [\w-]{22} \(preference, priority 5\): Prefers tea\.\n<\/memory>/,
  );
  expect(stdout).toMatch(/^retrieval +\d+/m);
});
