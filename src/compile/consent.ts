import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { destinationOf, type Destination } from "../decision/destination.ts";
import { WorkflowError } from "../errors.ts";
import { faultPoint } from "../internal/fault-point.ts";
import type { ConsentRow } from "../people/consent.ts";
import { allowedKinds, consentRequest } from "../people/consent-request.ts";
import type { Execution } from "../state/execution.ts";
import { settleConsent, type NeededConsent, type PendingConsent } from "../workflow/consent.ts";
import { sensitiveSources } from "../workflow/sensitive.ts";
import { pause, type Action } from "./action.ts";
import type { Runtime } from "./runtime.ts";

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
  /** Where the prompt goes. */
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
export function requireNeeded({ name, sensitive }: Runtime["workflow"], { withheld, destination }: Exposure): void {
  const missing = (sensitive.needed ?? []).filter((kind) => withheld.includes(kind));
  if (missing.length === 0) return;
  const what = missing.join(", ");
  throw new WorkflowError(
    "CONSENT_WITHHELD",
    `${what} may not go to ${destination}, and ${name} cannot do its work without; allow it (statecard consent allow ${name}) and resume, or use a model on this machine`,
    { details: { kinds: missing, destination } },
  );
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

/** The same for one destination, from the decisions that are kept. Pure. */
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

/** Whether a consent that a task waits for was given or refused elsewhere meanwhile. */
export async function isDecided(
  store: Pick<Runtime["store"], "consents">,
  taskId: string,
  workflow: string,
  { destination, kinds }: PendingConsent,
): Promise<boolean> {
  const rows = (await store.consents(taskId, workflow)).filter((row) => row.destination === destination);
  return kinds.every((kind) => rows.some((row) => row.kind === kind));
}

/**
 * Asks a person whether data may go to a model, once: what they say is kept for all tasks of the workflow, and where
 * it was said for another task meanwhile, nobody is asked.
 */
export async function obtainConsent(action: Action, pending: PendingConsent): Promise<Execution> {
  const { runtime, snapshot, lease, forks } = action;
  const { store, workflow, clock } = runtime;
  const { taskId } = lease;
  const { destination, kinds } = pending;
  const request = consentRequest(workflow, pending, { revision: snapshot.execution.revision, forks });
  await store.addRequests(taskId, pending.decision, forks, [request]);
  for (;;) {
    const row = await store.request(taskId, request.id);
    if (row?.answer) {
      const allowed = allowedKinds(kinds, row.answer);
      const by = row.answeredBy;
      const decided = { workflow: workflow.name, destination, by, at: clock.now() };
      await store.keepConsents(
        taskId,
        kinds.map((kind) => ({ ...decided, kind, isAllowed: allowed.includes(kind) })),
      );
      faultPoint("before-commit");
      return settleConsent(snapshot.execution, { ...parted(kinds, allowed), destination, by });
    }
    const { withheld, needed } = exposure(
      kinds,
      runtime.consent,
      { name: destination, model: pending.model },
      await store.consents(taskId, workflow.name),
    );
    if (needed === null) {
      const allowed = kinds.filter((kind) => !withheld.includes(kind));
      return settleConsent(snapshot.execution, { ...parted(kinds, allowed), destination, by: null });
    }
    faultPoint("before-interrupt");
    await pause(action, [request]);
  }
}

function parted(kinds: readonly string[], allowed: readonly string[]) {
  return { allowed, withheld: kinds.filter((kind) => !allowed.includes(kind)) };
}
