import { addUsage, type Execution, type Observation, type Usage } from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import type { Refusal } from "../state/patch.ts";
import { admitDecision, asCommitted, concluded, withAppended, type Update } from "./advance.ts";
import type { AnyWorkflow, Snapshot } from "./define.ts";
import { FREE, lastUpdate, moveTo, type Decision } from "./record.ts";
import { takeIn, type TakenIn } from "./take-in.ts";

/** What a pending action came to: what was observed, for a child's end a patch and a move, and what it cost. */
export interface Settlement {
  readonly observation: Observation;
  readonly result: Decision | null;
  readonly usage: Usage;
  /** True where the outcome brings text from outside. */
  readonly untrusted?: boolean;
}

/** Commits the outcome of a pending action. Pure. */
export function settle(
  workflow: AnyWorkflow,
  snapshot: Snapshot,
  { observation, result, usage, untrusted }: Settlement,
): { ok: true; update: Update } | { ok: false; refusal: Refusal } {
  const { execution } = snapshot;
  const { pending } = execution;
  const taken =
    pending?.kind === "calls" && observation.kind === "results"
      ? takeIn(workflow, snapshot, pending, observation.results)
      : NOTHING_TAKEN;
  const observed = withNotes(observation, taken.notes);
  const settled: Execution = {
    ...execution,
    ...taken.record,
    ...(untrusted ? { untrusted } : {}),
    pending: null,
    observation: observed,
    status: "running",
    revision: execution.revision + 1,
    usage: addUsage(execution.usage, usage),
  };
  let to = execution.step;
  let decided: Decision = {};
  let changes = taken.changes;
  if (result) {
    const { calls, ...rest } = result;
    const base = { execution, state: taken.state ?? snapshot.state };
    let admitted = admitDecision(workflow, base, rest, Boolean(calls?.length) || pending?.kind === "calls");
    if (!admitted.ok) return admitted;
    if (admitted.step !== execution.step) admitted = concluded(workflow, base, admitted);
    to = admitted.step;
    decided = rest;
    changes = { ...changes, ...admitted.changes };
  }
  const hasChanged = Object.keys(changes).length > 0;
  const committed = result || hasChanged ? asCommitted(workflow, snapshot.state, decided, changes) : null;
  const told = lastUpdate("result", execution.step, committed, observed, { ...FREE, usage });
  const last = withAppended(workflow, snapshot.state, told, changes);
  const record = { ...settled, last };
  return { ok: true, update: { changes, execution: result ? moveTo(workflow, record, to, null) : record } };
}

const NOTHING_TAKEN: Omit<TakenIn, "state"> & { readonly state?: State } = { changes: {}, record: {}, notes: [] };

function withNotes(observation: Observation, notes: readonly string[]): Observation {
  if (observation.kind !== "results" || notes.length === 0) return observation;
  return { ...observation, note: [observation.note ?? [], notes].flat().join("; ") };
}
