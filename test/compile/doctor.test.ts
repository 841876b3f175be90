import { defineWorkflow, diagnose, field, type Patient, type TaskEvent } from "statecard";
import { expect, test } from "vitest";
import { z } from "zod";
import { newExecution } from "../../src/state/execution.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";

const NOW = Date.UTC(2026, 10, 1);

const workflow = anyWorkflow(
  defineWorkflow({
    name: "w",
    version: 1,
    state: { note: field(z.string()) },
    initial: "work",
    steps: { work: { writes: ["note"], to: ["work", "done"], instructions: "Work." }, done: { final: true } },
  }),
);

const well: Patient = {
  workflow,
  execution: { ...newExecution(workflow), taskId: "t", status: "running", decisions: 6 },
  state: { note: "x" },
  status: "running",
  waiting: [],
  lastError: null,
  quarantine: null,
  events: [],
  updatedAt: NOW - 1000,
  now: NOW,
  owner: { host: "here", pid: 7, since: NOW - 2000 },
  policy: "adaptive",
  drift: [],
};

const eventsOf = (...all: readonly (readonly [kind: string, data: Record<string, unknown>])[]): readonly TaskEvent[] =>
  all.map(([kind, data], sequence) => ({ sequence, revision: sequence, kind, at: NOW, data }));

const prompts = (...sizes: readonly number[]) =>
  eventsOf(
    ...sizes.map((viewBytes) => ["decision", { decision: { patch: { note: "x" } }, measures: { viewBytes } }] as const),
  );

const call = (digest: string, key = digest) => ["call", { tool: "search", digest, key }] as const;
const returned = (key: string, digest = key, value = "") =>
  ["returned", { key, digest, result: { status: "ok", value } }] as const;
const idle = ["decision", { step: "work", decision: { patch: { note: null }, next: "work" } }] as const;
const request = { id: "3.0", question: "?", kind: "question" } as const;
const todo = (text: string, status = "pending") => ({ id: "1", text, status });

test.each<[string, Partial<Patient>, RegExp]>([
  ["QUARANTINED", { quarantine: "field note is gone" }, /field note is gone/],
  [
    "FAILED",
    { status: "failed", lastError: { code: "MODEL_FAILED", message: "no answer", step: "work" } },
    /MODEL_FAILED at work: no answer/,
  ],
  ["LEFT_BEHIND", { owner: null, updatedAt: NOW - 600_000 }, /no process runs it.*10 min/],
  [
    "STUCK",
    { updatedAt: NOW - 900_000, owner: { host: "here", pid: 7, since: NOW - 600_000 } },
    /process 7 on here runs work, .*since 2026-10-31T23:50:00\.000Z \(10 min\)/,
  ],
  [
    "UNKNOWN_CALL",
    { status: "waiting_user", waiting: [{ ...request, kind: "unknown", tool: "pay" }] },
    /pay \(request 3\.0\)/,
  ],
  ["UNKNOWN_CALL", { owner: null, events: eventsOf(call("a"), returned("a"), call("b")) }, /search \(call b\)$/],
  ["REQUEST_EXPIRED", { status: "waiting_user", waiting: [{ ...request, expiresAt: NOW - 1 }] }, /question 3\.0/],
  ["FILES_CHANGED", { drift: ["a.js"] }, /files changed outside: a\.js/],
  ["FILES_CHANGED", { state: { resources: [{ path: "b.js", status: "gone" }] } }, /b\.js/],
  ["NO_PROGRESS", { events: eventsOf(idle, idle, idle, idle, idle) }, /last 5 decisions/],
  ["NO_PROGRESS", { execution: { ...well.execution, decisionsByStep: { work: 20 } } }, /20 of at most 25/],
  [
    "REPEATED_CALLS",
    { events: eventsOf(...["1", "2", "3", "4"].flatMap((key) => [call("a", key), returned(key, "a", "same")])) },
    /search 4 times with the same arguments and result/,
  ],
  [
    "REPEATED_CALLS",
    { execution: { ...well.execution, toolUse: { search: { calls: 9, stale: 4, seen: [], failed: [] } } } },
    /last 4 calls of search/,
  ],
  [
    "REFUSED_OFTEN",
    { execution: { ...well.execution, refused: 4 }, events: eventsOf(["refused", { code: "REQUIRES" }]) },
    /4 answers.*REQUIRES/,
  ],
  [
    "TOKENS_RISE",
    { policy: "history", events: prompts(2000, 3000, 4000, 5000, 6000, 7000) },
    /3\.0 KB to 6\.0 KB.*policy history/,
  ],
  ["TOKENS_RISE", { events: prompts(2000, 3000, 4000, 5000, 6000, 7000) }, /in 6 decisions$/],
  ["NO_FOCUS", { state: { todos: [todo("write the letter")] } }, /1 items are open in todos/],
  ["VAGUE_STEPS", { state: { focus: "x", todos: [todo("work on various things")] } }, /"work on various things"/],
  ["VAGUE_STEPS", { workflow: { ...workflow, steps: { work: { to: ["work"] } } } }, /without instructions: work/],
])("%s (%#)", (code, change, evidence) => {
  const troubles = diagnose({ ...well, ...change });
  expect(troubles.map((trouble) => trouble.code)).toEqual([code]);
  expect(troubles[0]?.evidence).toMatch(evidence);
  expect(troubles[0]?.action.length).toBeGreaterThan(10);
});

test.each<[string, Partial<Patient>]>([
  ["a task that runs", {}],
  [
    "one that waits for an answer in time",
    { status: "waiting_user", owner: null, updatedAt: 0, waiting: [{ ...request, expiresAt: NOW + 1 }] },
  ],
  ["one that has just been left", { owner: null }],
  ["one that was just taken up after a long time", { updatedAt: 0 }],
  [
    "one whose calls go on, though it has long committed nothing",
    { updatedAt: 0, owner: { host: "here", pid: 7, since: null }, events: eventsOf(call("a")) },
  ],
  [
    "a finished one, whatever its state says",
    { status: "completed", owner: null, updatedAt: 0, drift: ["a.js"], state: { todos: [todo("x")] } },
  ],
  ["prompts that are cut back again and again", { events: prompts(2000, 6000, 2000, 6000, 2000, 6000) }],
  ["one without its definition", { workflow: null }],
  [
    "the same call that brings something else",
    { events: eventsOf(...["1", "2", "3", "4"].flatMap((key) => [call("a", key), returned(key, "a", key)])) },
  ],
  ["a call that runs", { events: eventsOf(call("a")) }],
  ["work in a language without blanks", { state: { focus: "x", todos: [todo("修复登录接口的空指针")] } }],
  ["work with a focus", { state: { todos: [todo("write the letter", "in_progress"), todo("send it off")] } }],
])("nothing is wrong with %s", (_name, change) => {
  expect(diagnose({ ...well, ...change })).toEqual([]);
});
