import { INTERRUPT } from "@langchain/langgraph";
import { answer, compile, signedIn, sqliteStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { airlineTools } from "../../graphs/airline/tools.ts";
import { airlineWorld, type World } from "../../graphs/airline/world.ts";
import { airline } from "../../graphs/airline/workflow.ts";
import type { Tools } from "../../src/workflow/tool.ts";
import { callDirectly, missingAirline, readTasks, recordedWorld, type AirlineTask } from "../support/airline.ts";

const missing = missingAirline();
const isWrite = (name: string) => (airlineTools as Tools)[name]?.effect === "write";

// What these lists cancel, the airline's own text forbids: an economy trip without insurance (10, 34), a
// trip that has been flown (26, 27). So a colleague has to agree as well as the user.
const EXCEPTIONS = new Set([10, 26, 27, 34]);

/** The decisions of a model that knows a task's right actions. */
function scriptOf({ user_id, actions }: AirlineTask): readonly object[] {
  const script: object[] = [{ patch: { userId: user_id }, next: "gather" }];
  for (const { name: tool, kwargs: args } of actions) {
    if (tool === "transfer_to_human_agents") return [...script, { patch: { summary: args.summary }, next: "transfer" }];
    if (isWrite(tool)) script.push({ next: "propose" }, { patch: { proposal: { tool, args } }, next: "review" });
    else script.push({ calls: [{ tool, args }] });
  }
  return [...script, { patch: { outcome: "all done" }, next: "done" }];
}

/** Puts a task through the compiled workflow; these people confirm whatever is asked, in turn. */
async function run(task: AirlineTask, people: readonly string[]) {
  const world = airlineWorld(recordedWorld);
  const model = scriptedModel(scriptOf(task));
  const graph = compile(airline, { model, store: sqliteStore(":memory:"), clients: { world } });
  const config = (who: string) => ({ configurable: { thread_id: `task-${task.id}`, ...signedIn(who) } });
  let result = await graph.invoke({ message: "hello" }, config(task.user_id));
  let approvals = 0;
  while (result[INTERRUPT] && people.length > 0) {
    result = await graph.invoke(answer(result, "approve"), config(people[approvals % people.length] ?? ""));
    approvals += 1;
  }
  return { world, model, approvals, isWaiting: result[INTERRUPT] !== undefined, status: result.execution.status };
}

/** The world after a task's right actions were applied without any workflow. */
function applied({ actions }: AirlineTask): World {
  const world = airlineWorld(recordedWorld);
  for (const { name, kwargs } of actions) callDirectly(world, name, kwargs);
  return world;
}

/** Whether two worlds are the same, as text: comparing them member by member takes ten times as long. */
function isSame(one: World, other: World): boolean {
  const [a, b] = [one, other].map(({ reservations, users, changes }) => JSON.stringify([reservations, users, changes]));
  return a === b;
}

describe("the right actions of the 50 tasks", { timeout: 600_000 }, () => {
  test("pass through the workflow and leave the world as they should", async ({ skip }) => {
    skip(missing !== null, missing ?? "");
    const tasks = readTasks();
    expect(tasks).toHaveLength(50);
    let writes = 0;
    for (const task of tasks) {
      const people = EXCEPTIONS.has(task.id) ? [task.user_id, "a colleague"] : [task.user_id];
      const { world, model, approvals, status } = await run(task, people);
      expect([task.id, status]).toEqual([task.id, "completed"]);
      model.assertConsumed();
      expect([task.id, isSame(world, applied(task))]).toEqual([task.id, true]);
      if (people.length === 1) expect(approvals).toBe(world.changes.length);
      writes += world.changes.length;
    }
    expect(writes).toBe(tasks.flatMap(({ actions }) => actions).filter(({ name }) => isWrite(name)).length);
  });

  test("write nothing where no one confirms", async ({ skip }) => {
    skip(missing !== null, missing ?? "");
    for (const task of readTasks()) {
      const { world, isWaiting } = await run(task, []);
      expect([task.id, isSame(world, airlineWorld(recordedWorld))]).toEqual([task.id, true]);
      expect([task.id, isWaiting]).toEqual([task.id, task.actions.some(({ name }) => isWrite(name))]);
    }
  });
});
