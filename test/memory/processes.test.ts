import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Memory } from "statecard";
import { expect, onTestFinished, test } from "vitest";
import { onBothDialects } from "../support/stores.ts";

const SCRIPT = fileURLToPath(new URL("../support/memory-process.ts", import.meta.url));

async function start(place: readonly string[]) {
  const child = spawn(process.execPath, ["--import", "tsx", SCRIPT, ...place], { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await lines.next();
  return {
    async go() {
      child.stdin.write("go\n");
      const written = Number((await lines.next()).value);
      if (child.exitCode === null) await once(child, "exit");
      return written;
    },
  };
}

onBothDialects((dialect) => {
  test("two processes that write the same memories at once make each of them once", async () => {
    const memory = new Memory(dialect.open().memory(), { user: "shared" });
    expect(await memory.list()).toEqual([]);
    const processes = await Promise.all([start(dialect.place), start(dialect.place)]);
    const written = await Promise.all(processes.map((one) => one.go()));
    expect(written.reduce((sum, count) => sum + count, 0)).toBe(20);
    expect(await memory.list({ limit: 100 })).toHaveLength(20);
    expect(await memory.recall({ query: "red line 7", limit: 1 })).toMatchObject([{ text: "Line 7 is red." }]);
  });
});
