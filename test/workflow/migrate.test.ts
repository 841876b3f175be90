import fc from "fast-check";
import { defineTool, defineWorkflow, field, type AnyWorkflow, type Execution, type Migration } from "statecard";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { newExecution } from "../../src/state/execution.ts";
import { isFieldChannel } from "../../src/state/fields.ts";
import { anyWorkflow } from "../../src/workflow/define.ts";
import { emptyFields, migrateTask, type Quarantine } from "../../src/workflow/migrate.ts";
import { applyMigration, type StoredTask } from "../../src/workflow/migrations.ts";

const refund = defineTool({
  description: "Pays money back.",
  effect: "write",
  parameters: z.object({ amount: z.number().positive() }),
  run: () => "paid",
});

/** Version 1 of the workflow that the tests release anew. */
const first = anyWorkflow(
  defineWorkflow({
    name: "claim",
    version: 1,
    state: {
      amount: field(z.number()),
      note: field(z.string()),
      items: field(z.array(z.string())).appendOnly(),
    },
    input: ["note"],
    tools: { refund },
    initial: "collect",
    steps: {
      collect: { writes: ["amount", "note", "items"], to: ["collect", "review"] },
      review: { tools: ["refund"], writes: ["amount", "note"], to: ["review", "collect", "done"] },
      done: { final: true },
    },
  }),
);

interface Changed {
  readonly version?: number;
  readonly migrations?: Readonly<Record<number, Migration>>;
  readonly state?: AnyWorkflow["state"];
  readonly steps?: AnyWorkflow["steps"];
  readonly tools?: AnyWorkflow["tools"];
  readonly checks?: AnyWorkflow["checks"];
  readonly initial?: string;
}

/** A later release, made from the first one. */
const release = (changed: Changed = {}): AnyWorkflow => ({ ...first, version: 2, ...changed });
const renamed = (from: string, to: string, steps: AnyWorkflow["steps"] = first.steps): AnyWorkflow["steps"] =>
  Object.fromEntries(
    Object.entries(steps).map(([name, step]) => [
      name === from ? to : name,
      { ...step, ...(step.to ? { to: step.to.map((next) => (next === from ? to : next)) } : {}) },
    ]),
  );

const record = (changes: Partial<Execution> = {}): Execution => ({
  ...newExecution(first),
  taskId: "t",
  status: "running",
  step: "review",
  completedSteps: ["collect"],
  revision: 3,
  decisions: 3,
  decisionsByStep: { collect: 2, review: 1 },
  ...changes,
});

/** A task as version 1 stored it, by default one that stands at `review` and is about to run it. */
function stored(changes: Partial<Execution> = {}, values: Readonly<Record<string, unknown>> = {}): StoredTask {
  const execution = record(changes);
  const due = execution.pending ? "act" : execution.step;
  return {
    execution,
    values: {
      amount: 5,
      note: null,
      items: ["a"],
      message: null,
      [`branch:to:${due}`]: "collect",
      __pregel_tasks: [],
      ...values,
      execution,
    },
    channelVersions: {
      __start__: 2,
      "branch:to:collect": 4,
      "branch:to:review": 5,
      "branch:to:act": 3,
      amount: 4,
      note: 2,
    },
    versionsSeen: {
      __input__: {},
      __interrupt__: { "branch:to:review": 3, amount: 3 },
      collect: { "branch:to:collect": 3 },
      review: { "branch:to:review": 2 },
      act: { "branch:to:act": 2 },
    },
  };
}

function migrated(workflow: AnyWorkflow, task: StoredTask) {
  const verdict = migrateTask(workflow, task);
  if (verdict.kind !== "migrated") throw new Error(`not migrated: ${JSON.stringify(verdict)}`);
  return verdict;
}

function quarantined(workflow: AnyWorkflow, task: StoredTask): Quarantine {
  const verdict = migrateTask(workflow, task);
  if (verdict.kind !== "quarantined") throw new Error(`not quarantined: ${verdict.kind}`);
  return verdict;
}

describe("what fits", () => {
  test("a task of the same version, untouched", () => {
    expect(migrateTask(first, stored())).toEqual({ kind: "fits" });
  });

  test("a new version in which every name and value fits needs no declaration", () => {
    const { task, steps } = migrated(release(), stored());
    expect(task.execution).toEqual({ ...record(), version: 2 });
    expect(task.values.execution).toEqual(task.execution);
    expect(steps).toEqual([]);
  });

  test("fields that did not exist get null", () => {
    const workflow = release({ state: { ...first.state, country: field(z.string()) } });
    const { task, steps } = migrated(workflow, stored());
    expect(task.values.country).toBeNull();
    expect(steps).toEqual(["field country is new and empty"]);
  });

  test("a field that is gone and had no value goes, and its channel's version with it", () => {
    const { note: _note, ...state } = first.state;
    const { task } = migrated(release({ state }), stored());
    expect(task.values).not.toHaveProperty("note");
    expect(task.channelVersions).not.toHaveProperty("note");
  });

  test("parts that a schema has got defaults for are filled in", () => {
    const address = field(z.object({ street: z.string(), country: z.string().default("DE") }));
    const workflow = release({ state: { ...first.state, address } });
    const { task } = migrated(workflow, stored({}, { address: { street: "Ring 1" } }));
    expect(task.values.address).toEqual({ street: "Ring 1", country: "DE" });
  });

  test("names that only the past knows are dropped from the record", () => {
    const { task } = migrated(
      release(),
      stored({ completedSteps: ["greet", "collect"], decisionsByStep: { greet: 1, review: 1 } }),
    );
    expect(task.execution).toMatchObject({ completedSteps: ["collect"], decisionsByStep: { review: 1 } });
  });
});

describe("renamed steps", () => {
  const workflow = release({
    steps: renamed("review", "check"),
    migrations: { 2: { renameSteps: { review: "check" } } },
  });

  test("the record, the branch that leads to it, and what its node has seen", () => {
    const { task, steps } = migrated(workflow, stored());
    expect(task.execution).toMatchObject({ step: "check", version: 2, decisionsByStep: { collect: 2, check: 1 } });
    expect(task.values).toMatchObject({ "branch:to:check": "collect" });
    expect(JSON.stringify(task)).not.toContain("review");
    expect(task.channelVersions).toMatchObject({ "branch:to:check": 5 });
    expect(task.versionsSeen).toMatchObject({
      check: { "branch:to:check": 2 },
      __interrupt__: { "branch:to:check": 3, amount: 3 },
    });
    expect(steps).toEqual(["step review is now check"]);
  });

  test("a failed task's error and its latest update", () => {
    const last = {
      kind: "decision",
      step: "collect",
      decision: { because: "ready", next: "review" },
      observation: null,
      usage: newExecution(first).usage,
      measures: null,
    } as const;
    const lastError = { code: "STEP_FAILED", message: "threw", step: "review" };
    const { task } = migrated(workflow, stored({ status: "failed", lastError, last }));
    expect(task.execution.lastError?.step).toBe("check");
    expect(task.execution.last).toEqual({ ...last, decision: { because: "ready", next: "check" } });
  });

  test("names can be swapped", () => {
    const swapped = release({ migrations: { 2: { renameSteps: { review: "collect", collect: "review" } } } });
    const { task } = migrated(swapped, stored());
    expect(task.execution).toMatchObject({
      step: "collect",
      completedSteps: ["review"],
      decisionsByStep: { review: 2, collect: 1 },
    });
    expect(task.channelVersions).toMatchObject({ "branch:to:collect": 5, "branch:to:review": 4 });
    expect(task.versionsSeen).toMatchObject({
      collect: { "branch:to:collect": 2 },
      review: { "branch:to:review": 3 },
    });
  });

  test("a task that waits for a question keeps the question", () => {
    const pending = { kind: "question", decision: 3, question: "Really?" } as const;
    const { task } = migrated(workflow, stored({ pending, status: "waiting_user" }));
    expect(task.execution).toMatchObject({ step: "check", pending });
    expect(task.values).toHaveProperty(["branch:to:act"]);
  });

  test("a child workflow's task is found under the step's old name", () => {
    const child = anyWorkflow(
      defineWorkflow({
        name: "child",
        version: 1,
        state: {},
        initial: "a",
        steps: { a: { to: ["b"] }, b: { final: true } },
      }),
    );
    const steps = renamed("review", "check", { ...first.steps, review: { to: ["done"], workflow: child } });
    const pending = { kind: "workflow", decision: 3, workflow: "child", input: {} } as const;
    const { task } = migrated({ ...workflow, steps }, stored({ pending }));
    expect(task.execution.pending).toEqual({ ...pending, startedAt: "review" });
    const again = { ...workflow, version: 3, steps: renamed("check", "inspect", steps) };
    const later = { ...again, migrations: { ...workflow.migrations, 3: { renameSteps: { check: "inspect" } } } };
    expect(migrated(later, task).task.execution.pending).toEqual({ ...pending, startedAt: "review" });
  });
});

describe("removed steps", () => {
  const { review: _review, ...rest } = first.steps;
  const steps = { ...rest, collect: { ...first.steps.collect, to: ["collect", "done"] } };
  const workflow = release({ steps, migrations: { 2: { removeSteps: { review: "collect" } } } });

  test("a task that stood there goes on at the declared step, as one that has not seen its branch", () => {
    const { task, steps: done } = migrated(workflow, stored());
    expect(task.execution).toMatchObject({
      step: "collect",
      completedSteps: ["collect"],
      decisionsByStep: { collect: 2 },
    });
    expect(task.values).toHaveProperty(["branch:to:collect"]);
    const { channelVersions, versionsSeen } = task;
    expect(Number(channelVersions["branch:to:collect"])).toBeGreaterThan(
      Number(versionsSeen.collect?.["branch:to:collect"]),
    );
    expect(versionsSeen).not.toHaveProperty("review");
    const { "branch:to:review": review, "branch:to:collect": collect } = stored().channelVersions;
    const turned = {
      ...stored(),
      channelVersions: { "branch:to:review": review ?? 0, "branch:to:collect": collect ?? 0 },
    };
    expect(migrated(workflow, turned).task.channelVersions).toEqual({ "branch:to:collect": 5 });
    expect(done).toEqual(["step review is gone, the task goes on at collect"]);
  });

  test("a task that stands elsewhere forgets it", () => {
    const { task, steps: done } = migrated(workflow, stored({ step: "collect", completedSteps: ["review"] }));
    expect(task.execution).toMatchObject({ step: "collect", completedSteps: [] });
    expect(done).toEqual([]);
  });

  test("an unfinished task cannot go on at a step that ends it", () => {
    const bad = release({ steps, migrations: { 2: { removeSteps: { review: "done" } } } });
    expect(quarantined(bad, stored())).toMatchObject({ step: "done", reason: expect.stringContaining("ends a task") });
  });
});

describe("fields", () => {
  test("renamed, changed and removed, in the channels and in what will commit", () => {
    const workflow = release({
      state: { sum: field(z.string()), items: field(z.array(z.string())).appendOnly() },
      steps: { ...first.steps, review: { ...first.steps.review, writes: ["sum"] } },
      migrations: {
        2: {
          renameFields: { amount: "sum" },
          changeFields: { sum: (value) => `${String(value)} EUR` },
          removeFields: ["note"],
        },
      },
    });
    const pending = {
      kind: "calls",
      decision: 3,
      calls: [{ tool: "refund", args: { amount: 5 } }],
      patch: { amount: 7, note: "x" },
      clear: ["note"],
      next: "done",
    } as const;
    const { task, steps } = migrated(
      workflow,
      stored({ pending: { ...pending, calls: [...pending.calls], clear: ["note"] } }, { note: "old" }),
    );
    expect(task.values).toMatchObject({ sum: "5 EUR", items: ["a"] });
    expect(Object.keys(task.values).filter(isFieldChannel).toSorted()).toEqual(["items", "sum"]);
    expect(task.execution.pending).toEqual({ ...pending, patch: { sum: "7 EUR" }, clear: [] });
    expect(task.channelVersions).toMatchObject({ sum: 4 });
    expect(task.channelVersions).not.toHaveProperty("note");
    expect(steps).toEqual(["field amount is now sum", "field note is gone", "field sum changed its form"]);
  });

  test("null stays null, and the function cannot change what is stored", () => {
    const workflow = release({
      migrations: {
        2: { changeFields: { note: () => "made up", items: (value) => (value as string[]).push("b") } },
      },
    });
    const task = stored();
    expect(quarantined(workflow, task)).toMatchObject({ field: "items", reason: expect.stringContaining("threw") });
    expect(task.values.items).toEqual(["a"]);
    const fine = release({ migrations: { 2: { changeFields: { note: () => "made up" } } } });
    expect(migrated(fine, task).task.values.note).toBeNull();
  });

  test("the input of a task that has not started", () => {
    const workflow = release({
      initial: "greet",
      state: { amount: field(z.number()), remark: field(z.number()), items: first.state.items ?? field(z.never()) },
      steps: { ...first.steps, greet: { to: ["collect"] } },
      migrations: { 2: { renameFields: { note: "remark" }, changeFields: { remark: Number } } },
    });
    const task = stored(
      { step: "collect", revision: 0, status: "created", completedSteps: [], decisionsByStep: {} },
      { amount: null, items: null, __start__: { message: "hello", note: "12" } },
    );
    const { ["branch:to:collect"]: _branch, ...values } = task.values;
    const { task: now } = migrated(workflow, { ...task, values });
    expect(now.values.__start__).toEqual({ message: "hello", remark: 12 });
    expect(now.execution.step).toBe("greet");
  });

  test("version by version", () => {
    const workflow = release({
      version: 4,
      state: { ...first.state, amount: field(z.string()) },
      migrations: {
        2: { changeFields: { amount: (value) => Number(value) * 100 } },
        4: { changeFields: { amount: (value) => `${String(value)} cents` } },
      },
    });
    expect(migrated(workflow, stored()).task.values.amount).toBe("500 cents");
    expect(migrated(workflow, stored({ version: 2 })).task.values.amount).toBe("5 cents");
    expect(quarantined(workflow, stored({ version: 4 }))).toMatchObject({ field: "amount", sameVersion: true });
  });
});

describe("quarantine", () => {
  const cases: readonly [name: string, AnyWorkflow, StoredTask, Partial<Quarantine>, says: RegExp][] = [
    [
      "a step that has another name now, with the old and the new names",
      release({ steps: renamed("review", "check") }),
      stored(),
      { step: "review", from: 1, to: 2, sameVersion: false },
      /step "review" is not in version 2, whose steps are collect, check and done; .*renameSteps: \{ review: "…" \}/,
    ],
    [
      "a field that was a number and is a text now",
      release({ state: { ...first.state, amount: field(z.string()) } }),
      stored(),
      { field: "amount", unfit: ["amount"] },
      /field "amount" was a number and does not fit its schema: .*string.*changeFields: \{ amount:/,
    ],
    [
      "a field that is gone and had a value",
      release({ state: { amount: field(z.number()) } }),
      stored({}, { note: "x" }),
      { field: "note", unfit: ["note", "items"] },
      /field "note" has a value and is not in version 2, whose fields are amount; .*renameFields.*removeFields/,
    ],
    [
      "a newer release",
      first,
      stored({ version: 3 }),
      { from: 3, to: 1, sameVersion: false },
      /written by version 3, a newer release/,
    ],
    [
      "a changed workflow without a new version",
      { ...first, state: { ...first.state, amount: field(z.string()) } },
      stored(),
      { sameVersion: true, field: "amount" },
      /its version was not/,
    ],
    [
      "a rule over several fields",
      release({ checks: { small: (state) => Number(state.amount) > 3 && "above 3" } }),
      stored(),
      {},
      /rule "small": above 3/,
    ],
    [
      "a rule that throws",
      release({ checks: { odd: () => JSON.parse("{") as undefined } }),
      stored(),
      {},
      /rule "odd" threw/,
    ],
    [
      "a function that throws",
      release({ migrations: { 2: { changeFields: { amount: () => JSON.parse("no") } } } }),
      stored(),
      { field: "amount" },
      /changeFields.amount threw: .*JSON/,
    ],
    [
      "a finished task whose last step ends nothing now",
      release({ steps: { ...first.steps, done: { to: ["archive"] }, archive: { final: true } } }),
      stored({ step: "done", status: "completed" }),
      { step: "done" },
      /has ended at step "done", which ends no task now/,
    ],
    [
      "a child workflow that the step runs no more",
      release(),
      stored({ pending: { kind: "workflow", decision: 3, workflow: "child", input: {} } }),
      { step: "review" },
      /runs workflow "child" in step "review", which runs no workflow now/,
    ],
    ["a damaged record", release(), stored({ decisions: "many" as never }), {}, /damaged at decisions/],
  ];
  test.each(cases)("%s", (_name, workflow, task, expected, says) => {
    const verdict = quarantined(workflow, task);
    expect(verdict).toMatchObject(expected);
    expect(verdict.reason).toMatch(says);
  });

  const calls = (args: Record<string, unknown>, more: { next?: string; patch?: Record<string, unknown> } = {}) =>
    stored({
      pending: {
        kind: "calls",
        decision: 3,
        calls: [{ tool: "refund", args }],
        patch: more.patch ?? null,
        clear: null,
        next: more.next ?? null,
      },
    });

  test("pending calls whose tool the step has no longer", () => {
    const steps = { ...first.steps, review: { ...first.steps.review, tools: [] } };
    expect(quarantined(release({ steps }), calls({ amount: 5 }))).toMatchObject({ tool: "refund" });
  });

  test("pending calls whose arguments fit no longer, with the tool", () => {
    const parameters = z.object({ cents: z.number() });
    const tools = { refund: defineTool({ description: "Pays.", effect: "write", parameters, run: () => "paid" }) };
    const verdict = quarantined(release({ tools }), calls({ amount: 5 }));
    expect(verdict).toMatchObject({ tool: "refund", reason: expect.stringContaining("cents") });
  });

  test("pending calls whose move or patch the step allows no longer", () => {
    const steps = { ...first.steps, review: { ...first.steps.review, to: ["collect"], writes: ["note"] } };
    expect(quarantined(release({ steps }), calls({ amount: 5 }, { next: "done" })).reason).toContain("done");
    expect(quarantined(release({ steps }), calls({ amount: 5 }, { patch: { amount: 1 } }))).toMatchObject({
      field: "amount",
    });
  });

  test("a closed condition is no reason: it is asked again when the results are there", () => {
    const review = { ...first.steps.review, to: [{ to: "done", when: () => false, because: "closed" }] };
    const steps = { ...first.steps, review };
    expect(migrateTask(release({ steps }), calls({ amount: 5 }, { next: "done" })).kind).toBe("migrated");
  });

  test("emptying what does not fit lets it go on", () => {
    const workflow = { ...first, state: { ...first.state, amount: field(z.string()) } };
    const verdict = quarantined(workflow, stored());
    expect(migrateTask(workflow, emptyFields(stored(), verdict.unfit))).toEqual({ kind: "fits" });
  });
});

// ---------------------------------------------------------------- any task, any migration

const NAMES = ["a", "b", "c", "d", "e"];
const someNames = fc.subarray(NAMES);
/** A rename that leaves no two things under one name. */
const permutation = fc
  .shuffledSubarray(NAMES, { minLength: 5 })
  .map((to) => Object.fromEntries(NAMES.map((name, index) => [name, to[index] ?? name])));
const migrations = fc.dictionary(
  fc.constantFrom("2", "3", "4"),
  fc.record({
    renameSteps: permutation,
    renameFields: permutation.map((names) =>
      Object.fromEntries(Object.entries(names).map(([from, to]) => [`f_${from}`, `f_${to}`])),
    ),
    changeFields: fc.constant({ f_a: (value: unknown) => (typeof value === "number" ? value + 1 : value) }),
  }),
);

const versions = fc.record({
  step: fc.constantFrom(...NAMES),
  past: someNames,
  version: fc.integer({ min: 1, max: 4 }),
});

const anyTask = versions.chain(({ step, past, version }) =>
  fc
    .record({ values: fc.array(fc.option(fc.integer()), { minLength: 5, maxLength: 5 }), seen: fc.array(fc.nat(9)) })
    .map(({ values, seen }): StoredTask => {
      const execution = record({
        version,
        step,
        completedSteps: past,
        decisionsByStep: Object.fromEntries(past.map((name) => [name, 1])),
      });
      const fields = Object.fromEntries(NAMES.map((name, index) => [`f_${name}`, values[index] ?? null]));
      return {
        execution,
        values: { ...fields, [`branch:to:${step}`]: "a", execution },
        channelVersions: {
          ...Object.fromEntries(past.map((name) => [`branch:to:${name}`, 5])),
          [`branch:to:${step}`]: 10,
        },
        versionsSeen: Object.fromEntries(
          [...past, step].map((name, index) => [name, { [`branch:to:${name}`]: seen[index] ?? 1 }]),
        ),
      };
    }),
);

const roomy = (declared: Readonly<Record<number, Migration>>): AnyWorkflow => ({
  ...first,
  version: 4,
  migrations: declared,
  state: Object.fromEntries(NAMES.map((name) => [`f_${name}`, field(z.number())])),
  steps: { ...Object.fromEntries(NAMES.map((name) => [name, { to: [...NAMES, "end"] }])), end: { final: true } },
});

describe("any task under any migration", () => {
  test("twice is once", () => {
    fc.assert(
      fc.property(anyTask, migrations, (task, declared) => {
        const workflow = roomy(declared);
        const once = migrateTask(workflow, task);
        if (once.kind === "fits") return;
        expect(once.kind).toBe("migrated");
        if (once.kind === "migrated") expect(migrateTask(workflow, once.task)).toEqual({ kind: "fits" });
      }),
    );
  });

  test("what was due is due: the branch leads to the record's step, in a version its node has not seen", () => {
    fc.assert(
      fc.property(anyTask, migrations, (task, declared) => {
        const verdict = migrateTask(roomy(declared), task);
        const { execution, values, channelVersions, versionsSeen } = verdict.kind === "migrated" ? verdict.task : task;
        const channel = `branch:to:${execution.step}`;
        expect(Object.keys(values).filter((name) => name.startsWith("branch:"))).toEqual([channel]);
        expect(channelVersions[channel]).toBe(10);
        expect(Number(versionsSeen[execution.step]?.[channel])).toBeLessThan(10);
      }),
    );
  });

  test("no value is lost, and nothing that was given is changed", () => {
    fc.assert(
      fc.property(anyTask, migrations, (task, declared) => {
        const before = structuredClone(task);
        const verdict = migrateTask(roomy(declared), task);
        expect(task).toEqual(before);
        if (verdict.kind !== "migrated") return;
        const count = (values: StoredTask["values"]) =>
          Object.entries(values).filter(([name, value]) => name.startsWith("f_") && value !== null).length;
        expect(count(verdict.task.values)).toBe(count(task.values));
      }),
    );
  });

  test("a rename and the rename back leave everything as it was", () => {
    fc.assert(
      fc.property(anyTask, permutation, (task, there) => {
        const back = Object.fromEntries(Object.entries(there).map(([from, to]) => [to, from]));
        const forth = applyMigration(task, { renameSteps: there, renameFields: {} }, () => {});
        expect(applyMigration(forth, { renameSteps: back }, () => {})).toEqual(task);
      }),
    );
  });
});

describe("a definition's migrations", () => {
  const faultsOf = (version: number, declared: Readonly<Record<number, Migration>>): readonly string[] => {
    try {
      defineWorkflow({
        name: "w",
        version,
        state: { sum: field(z.number()) },
        migrations: declared,
        initial: "a",
        steps: { a: { writes: ["sum"], to: ["b"] }, b: { final: true } },
      });
      return [];
    } catch (error) {
      const { faults } = (error as { details: { faults: { path: string; message: string; code: string }[] } }).details;
      return faults
        .filter((fault) => fault.code === "INVALID_MIGRATION")
        .map(({ path, message }) => `${path}: ${message}`);
    }
  };

  test.each<[string, number, Readonly<Record<number, Migration>>, readonly RegExp[]]>([
    ["sound", 3, { 2: { renameFields: { amount: "total" } }, 3: { renameFields: { total: "sum" } } }, []],
    [
      "a target that a later version removes",
      3,
      { 2: { renameSteps: { x: "y" } }, 3: { removeSteps: { y: "a" } } },
      [],
    ],
    ["a swap", 2, { 2: { renameSteps: { a: "b", b: "a" } } }, []],
    [
      "no such version",
      2,
      { 3: {}, 1: {} },
      [/migrations\.1: leads to version 1/, /migrations\.3: leads to version 3/],
    ],
    [
      "names that are not there",
      2,
      { 2: { renameFields: { amount: "total" }, removeSteps: { x: "y" } } },
      [/no field "total"/, /no step "y"/],
    ],
    [
      "an old name that leads nowhere today",
      3,
      { 2: { renameSteps: { x: "y" } }, 3: {} },
      [/migrations\.2: there is no step "y"/],
    ],
    [
      "renamed and removed",
      2,
      { 2: { renameSteps: { x: "a" }, removeSteps: { x: "b" } } },
      [/"x" is renamed and removed/],
    ],
    [
      "removed and there",
      2,
      { 2: { removeFields: ["sum"], removeSteps: { a: "b" } } },
      [/field "sum", which is there/, /step "a", which is there/],
    ],
  ])("%s", (_name, version, declared, says) => {
    const faults = faultsOf(version, declared);
    expect(faults).toHaveLength(says.length);
    says.forEach((pattern, index) => expect(faults[index]).toMatch(pattern));
  });
});
