import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineWorkflow, field } from "statecard";
import { recordingModel, replayingModel, runWorkflow, scriptedModel } from "statecard/testing";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";

const folder = mkdtempSync(join(tmpdir(), "statecard-recording-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const greeting = (instructions: string) =>
  defineWorkflow({
    name: "greeting",
    version: 1,
    instructions,
    state: { name: field(z.string()) },
    initial: "asking",
    steps: { asking: { writes: ["name"], to: ["asking", "done"] }, done: { requires: ["name"], final: true } },
  });
const script = [{ ask: "Who are you?" }, { patch: { name: "Ada" }, next: "done" }];
const run = (model: Parameters<typeof runWorkflow>[1]["model"], workflow = greeting("Be short.")) =>
  runWorkflow(workflow, { ...(model ? { model } : {}), message: "hello", answers: ["Ada"] });

test("a recorded run replays from its file, with the same answers for the same prompts", async () => {
  const recorder = recordingModel(scriptedModel(script));
  const recorded = await run(recorder);
  const file = join(folder, "greeting.json");
  recorder.save(file);
  const replayed = await run(replayingModel(file));
  expect(replayed.state).toEqual(recorded.state);
  expect(replayed.task.usage.calls).toBe(2);
  expect((JSON.parse(readFileSync(file, "utf8")) as unknown[]).length).toBe(2);
});

test("a prompt that has changed fails the replay, naming the line; `anyPrompt` lets it pass", async () => {
  const recorder = recordingModel(scriptedModel(script));
  await run(recorder);
  await expect(run(replayingModel(recorder.calls), greeting("Be polite."))).rejects.toThrow(
    /line \d+ was "Be short\." and is "Be polite\."/,
  );
  const lenient = await run(replayingModel(recorder.calls, { anyPrompt: true }), greeting("Be polite."));
  expect(lenient.state).toEqual({ name: "Ada" });
});

test("a call that was not recorded, and one that was not asked for, fail the test", async () => {
  const recorder = recordingModel(scriptedModel(script));
  await run(recorder);
  await expect(run(replayingModel(recorder.calls.slice(0, 1)))).rejects.toThrow("call 2 was not recorded");
  const model = replayingModel(recorder.calls);
  await expect(runWorkflow(greeting("Be short."), { model, message: "hello" })).rejects.toThrow("only 1 of 2");
});

test("a recording holds no key that was in a prompt or answer", async () => {
  const key = `sk-${"abcdefghij".repeat(3)}`;
  const recorder = recordingModel(scriptedModel([{ ask: `Is it ${key}?` }]));
  await runWorkflow(greeting(`Never say ${key}.`), { model: recorder, message: `my key is ${key}` });
  const file = join(folder, "key.json");
  recorder.save(file);
  expect(readFileSync(file, "utf8")).toContain("[redacted]");
  expect(readFileSync(file, "utf8")).not.toContain(key);
});
