import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { destinationOf, type Destination } from "../decision/destination.ts";
import { WorkflowError } from "../errors.ts";
import { faultPoint } from "../internal/fault-point.ts";
import type { ConsentRow } from "../people/consent.ts";
import { allowedKinds, consentQuestion, consentRequest } from "../people/consent-request.ts";
import { isExpired } from "../people/expiry.ts";
import type { RequestRow } from "../people/requests.ts";
import type { Execution } from "../state/execution.ts";
import { settleConsent, type NeededConsent, type PendingConsent } from "../workflow/consent.ts";
import { isModelStep } from "../workflow/next-step.ts";
import { sensitiveSources } from "../workflow/sensitive.ts";
import type { Settlement } from "../workflow/settle.ts";
import { expired, pause, type Action } from "./action.ts";
import { modelFor } from "./ask-model.ts";
import type { Runtime } from "./runtime.ts";
import { tenantOf } from "./task-id.ts";

/** What is settled about sensitive data before anybody is asked. */
export interface ConsentOptions {
  /** By kind of data: `allow` and `withhold` hold for every model and ask nobody; `ask` unless set. */
  readonly kinds?: Readonly<Record<string, "ask" | "allow" | "withhold">>;
  /** Hosts of models, with their port where they have one, that count as this machine: `"llm.example:8080"`. */
  readonly localHosts?: readonly string[];
}

/** What a prompt for a model may show of a workflow's sensitive data. */
export interface Exposure {
  /** The kinds that it may not show. */
  readonly withheld: readonly string[];
  /** What nobody has decided about yet; null where nothing is left open. */
  readonly needed: NeededConsent | null;
  /** The host that the prompt goes to, as decisions are kept for it; empty where it does not matter. */
  readonly destination: string;
}

const EVERYTHING: Exposure = { withheld: [], needed: null, destination: "" };

/** What of a task's sensitive data may go to a model, by what its program and people have decided so far. */
export async function exposureTo(
  runtime: Pick<Runtime, "workflow" | "store" | "consent">,
  taskId: string,
  model: BaseChatModel,
): Promise<Exposure> {
  const { workflow, store, consent } = runtime;
  const kinds = [...sensitiveSources(workflow).keys()];
  if (kinds.length === 0) return EVERYTHING;
  const destination = destinationOf(model, consent.localHosts);
  if (destination.isLocal) return EVERYTHING;
  return exposure(kinds, consent, destination, await store.consents(taskId, workflow.name));
}

/** @throws CONSENT_WITHHELD where a prompt may not show what no model can do without. */
export function requireNeeded(
  { name, sensitive }: Runtime["workflow"],
  taskId: string,
  { withheld, destination }: Exposure,
): void {
  const missing = (sensitive.needed ?? []).filter((kind) => withheld.includes(kind));
  if (missing.length === 0) return;
  const what = missing.join(", ");
  throw new WorkflowError(
    "CONSENT_WITHHELD",
    `${what} may not go to ${destination}, and ${name} cannot do its work without; allow it (${allowingCommand(name, taskId)}) and resume, or use a model on this machine`,
    { details: { kinds: missing, destination } },
  );
}

/** What a person enters to allow the data of a task's workflow. Pure. */
export function allowingCommand(workflow: string, taskId: string): string {
  const tenant = tenantOf(taskId);
  return `statecard consent allow ${workflow}${tenant && ` --tenant ${tenant}`}`;
}

/** Under this name consents for agents outside of this program are kept, whatever their model. */
export const OUTSIDE_AGENTS = "agents";

/** The kinds of data of a task that an agent outside may not be shown: all that nobody has allowed. */
export async function withheldFromAgents(
  { workflow, store, consent }: Pick<Runtime, "workflow" | "store" | "consent">,
  taskId: string,
): Promise<readonly string[]> {
  const kinds = [...sensitiveSources(workflow).keys()];
  if (kinds.length === 0) return [];
  const agents = { name: OUTSIDE_AGENTS, model: OUTSIDE_AGENTS };
  return exposure(kinds, consent, agents, await store.consents(taskId, workflow.name)).withheld;
}

/** What a prompt for one destination may show, from what is settled and the decisions that are kept. Pure. */
function exposure(
  kinds: readonly string[],
  { kinds: settled = {} }: ConsentOptions,
  { name, model }: Pick<Destination, "name" | "model">,
  rows: readonly ConsentRow[],
): Exposure {
  const decided = new Map(rows.filter(({ destination }) => destination === name).map((row) => [row.kind, row]));
  const standing = kinds.map((kind) => {
    const rule = Object.hasOwn(settled, kind) ? settled[kind] : "ask";
    if (rule === "allow" || rule === "withhold") return { kind, isAllowed: rule === "allow" };
    return { kind, isAllowed: decided.get(kind)?.isAllowed ?? null };
  });
  const open = standing.filter(({ isAllowed }) => isAllowed === null).map(({ kind }) => kind);
  return {
    // What is open is not allowed either.
    withheld: standing.filter(({ isAllowed }) => isAllowed !== true).map(({ kind }) => kind),
    needed: open.length > 0 ? { destination: name, model, kinds: open } : null,
    destination: name,
  };
}

/** The kind of log entry that says which request's answer was turned into decisions. */
const CONSENTED = "consented";

/**
 * Asks a person whether data may go to a model, once: what they say is kept for all tasks of the workflow, and what was
 * said elsewhere meanwhile holds. Where the step's model needs something else by now, its step asks anew.
 *
 * @returns the record once nothing is left to ask; the way of the step's deadline where that was over before.
 */
export async function obtainConsent(
  action: Action,
  pending: PendingConsent,
): Promise<{ readonly execution: Execution } | { readonly late: Settlement }> {
  const { runtime, snapshot, lease, forks } = action;
  const { store, workflow, clock } = runtime;
  const { revision, step } = snapshot.execution;
  const deadline = workflow.steps[step]?.deadline;
  const asked = consentRequest(workflow, pending, { revision, forks }, deadline && clock.now() + deadline.afterMs);
  await store.addRequests(lease.taskId, pending.decision, forks, [asked]);
  for (;;) {
    const row = await store.request(lease.taskId, asked.id);
    if (row?.answer) {
      await keepAnswer(action, pending, row);
      faultPoint("before-commit");
      return { execution: await settled(action, pending) };
    }
    if (!(await isStillNeeded(action, pending))) return { execution: await settled(action, pending) };
    // The row may be older than this run, and its time with it.
    const request = row?.request ?? asked;
    if (isExpired(request, clock.now())) {
      // A release may have taken the deadline away: then the step asks anew.
      if (!deadline) return { execution: await settled(action, pending) };
      return { late: expired(deadline.to, { kind: "expired", what: consentQuestion(workflow, pending) }) };
    }
    faultPoint("before-interrupt");
    await pause(action, [request]);
  }
}

/**
 * Keeps what an answer says about the kinds that are undecided: what was decided meanwhile was decided later than this
 * was asked. It is kept once; after a crash, a decision that was withdrawn since does not come back.
 */
async function keepAnswer(action: Action, pending: PendingConsent, { request, answer, answeredBy }: RequestRow) {
  const { runtime, snapshot, lease } = action;
  const { store, workflow, clock } = runtime;
  const allowed = answer && allowedKinds(request, pending.kinds, answer);
  const isKept = async () =>
    (await store.events(lease.taskId)).some(({ kind, data }) => kind === CONSENTED && data.id === request.id);
  if (!allowed || (await isKept())) return;
  const { needed } = await standing(action, pending);
  // Noted first: a crash in between costs another question, and never what nobody says any more.
  await store.append(lease.taskId, snapshot.execution.revision, CONSENTED, { id: request.id });
  const { destination } = pending;
  const decided = { workflow: workflow.name, destination, by: answeredBy, at: clock.now() };
  const open = needed?.kinds ?? [];
  await store.keepConsents(
    lease.taskId,
    open.map((kind) => ({ ...decided, kind, isAllowed: allowed.includes(kind) })),
  );
}

/** What is decided by now about the kinds that were asked about. */
async function standing({ runtime, lease }: Action, { destination, model, kinds }: PendingConsent) {
  const rows = await runtime.store.consents(lease.taskId, runtime.workflow.name);
  const { withheld, needed } = exposure(kinds, runtime.consent, { name: destination, model }, rows);
  return { withheld, needed, rows };
}

/** Whether the step's model needs what was asked for: it may be another by now, and a release may have settled it. */
async function isStillNeeded({ runtime, snapshot, lease }: Action, { destination, kinds }: PendingConsent) {
  const step = runtime.workflow.steps[snapshot.execution.step];
  if (!step || !isModelStep(step)) return false;
  const { needed } = await exposureTo(runtime, lease.taskId, modelFor(runtime, snapshot));
  return needed?.destination === destination && needed.kinds.every((kind) => kinds.includes(kind));
}

/** The record with what is decided by now; what nobody has decided its step asks about anew. */
async function settled(action: Action, pending: PendingConsent): Promise<Execution> {
  const { destination, kinds } = pending;
  const { withheld, needed, rows } = await standing(action, pending);
  const open = needed?.kinds ?? [];
  const people = new Set(
    rows.filter((row) => row.destination === destination && kinds.includes(row.kind)).map(({ by }) => by),
  );
  const [by = null] = people.size === 1 ? people : [];
  return settleConsent(action.snapshot.execution, {
    destination,
    allowed: kinds.filter((kind) => !withheld.includes(kind)),
    withheld: withheld.filter((kind) => !open.includes(kind)),
    by,
  });
}
