import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describeTask } from "statecard";
import { expect, onTestFinished, test, vi } from "vitest";
import { submitTask } from "../../src/batch/queue/submit.ts";
import { errandGraph } from "../support/errand.ts";
import { onBothQueues } from "../support/queues.ts";

const SCRIPT = fileURLToPath(new URL("../support/queue-process.ts", import.meta.url));
const SOON = { timeout: 60_000, interval: 20 };

/** What the tasks of all processes have done, in order. */
function linesOf(folder: string, what: "waits" | "sent"): readonly { readonly task: string; readonly pid: number }[] {
  if (!existsSync(join(folder, what))) return [];
  const lines = readFileSync(join(folder, what), "utf8").trimEnd().split("\n");
  return lines.map((line) => ({ task: line.split(" ")[0] ?? "", pid: Number(line.split(" ")[1]) }));
}

onBothQueues((place) => {
  async function startWorker(folder: string): Promise<ChildProcess> {
    const args = ["--import", "tsx", SCRIPT, place.schema.name, place.location, folder];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    if (child.stdout) await once(child.stdout, "data");
    return child;
  }

  test("of two workers one is killed: the other takes its tasks over, and nothing is lost or doubled", async () => {
    const folder = mkdtempSync(join(tmpdir(), "statecard-queue-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const store = place.schema.open();
    const graph = errandGraph(store, { wait: async () => {}, send: async () => {} });
    const queue = await place.queue(store);
    const [doomed, other] = await Promise.all([startWorker(folder), startWorker(folder)]);
    const tasks = Array.from({ length: 8 }, (_, index) => `task-${index}`);
    await Promise.all(tasks.map((taskId) => submitTask(queue, graph, { taskId, input: {} })));
    // It is in calls that change nothing yet, so that a person is asked nothing.
    await vi.waitFor(() => expect(linesOf(folder, "waits").some(({ pid }) => pid === doomed.pid)).toBe(true), SOON);
    doomed.kill("SIGKILL");
    await vi.waitFor(() => expect(linesOf(folder, "sent")).toHaveLength(8), SOON);
    const sent = linesOf(folder, "sent");
    expect(sent.map(({ task }) => task).toSorted()).toEqual(tasks);
    const begun = linesOf(folder, "waits").filter(({ pid }) => pid === doomed.pid);
    expect(sent.filter(({ task }) => begun.some((line) => line.task === task)).map(({ pid }) => pid)).toContain(
      other.pid,
    );
    await vi.waitFor(async () => expect(await store.wakes()).toEqual([]), SOON);
    expect(await Promise.all(tasks.map(async (task) => (await describeTask(store, task)).status))).toEqual(
      tasks.map(() => "completed"),
    );
    other.kill("SIGTERM");
    expect(await once(other, "exit")).toEqual([0, null]);
  });
});
