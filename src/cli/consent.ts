import { OUTSIDE_AGENTS } from "../compile/consent.ts";
import { isoTime } from "../compile/iso-times.ts";
import type { TaskStore } from "../compile/store.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { destinationOf } from "../decision/destination.ts";
import { isWorkflowError } from "../errors.ts";
import { systemUser } from "../internal/system-user.ts";
import { openStore } from "../storage/open-store.ts";
import { checkTenant, tenantPrefix } from "../storage/tenants.ts";
import { sensitiveSources } from "../workflow/sensitive.ts";
import { workflowsWithin } from "../workflow/within.ts";
import { storeForReading } from "./database.ts";
import { usage } from "./exit.ts";
import { declaredGraphs, loadGraph } from "./graphs.ts";
import type { ConsentAction, ConsentCommandOptions } from "./options.ts";
import { print } from "./print.ts";
import { ago, printable } from "./terminal.ts";

/** `statecard consent`: what may go to models elsewhere, by workflow, for all of its tasks. */
export function consentCommand(
  action: ConsentAction,
  graph: string | undefined,
  kinds: readonly string[],
  options: ConsentCommandOptions,
): Promise<number> {
  if (options.tenant !== undefined) checkTenant(options.tenant);
  if (options.to?.trim() === "") throw usage(`--to names a host, or ${OUTSIDE_AGENTS}`);
  if (action === "list") {
    if (graph !== undefined) throw usage("consent list takes no graph; it lists all of them");
    return listConsents(options);
  }
  if (graph === undefined) throw usage(`consent ${action} needs a graph: statecard consent ${action} GRAPH`);
  return action === "withdraw" ? withdraw(graph, kinds, options) : decide(action, graph, kinds, options);
}

async function listConsents(options: ConsentCommandOptions): Promise<number> {
  const rows = await storeForReading(options.db).allConsents(options.tenant);
  const consents = rows.map(({ tenant, at, isAllowed, ...row }) => ({
    ...(tenant && { tenant }),
    ...row,
    allowed: isAllowed,
    at: isoTime(at),
  }));
  const now = Date.now();
  const lines = rows.map(({ tenant, workflow, destination, kind, isAllowed, by, at }) =>
    printable(
      `${tenant && `@${tenant}  `}${workflow}  ${kind}  to ${placeOf(destination)}: ${isAllowed ? "allowed" : "withheld"}  by ${by ?? "somebody who was not signed in"}, ${ago(now - at)} ago`,
    ),
  );
  return print(options, { consents }, lines.join("\n") || "Nothing has been decided yet.");
}

/** How a destination is told: under one name stand all agents from outside. */
function placeOf(destination: string): string {
  return destination === OUTSIDE_AGENTS ? "agents that come by MCP" : destination;
}

async function decide(
  action: "allow" | "withhold",
  name: string,
  named: readonly string[],
  options: ConsentCommandOptions,
): Promise<number> {
  const store = openStore(options.db);
  const tenant = options.tenant ?? "";
  const subjects = await subjectsOf(name, store, tenant);
  const declared = distinct(subjects.flatMap(({ kinds }) => kinds));
  if (declared.length === 0) throw usage(`${name} declares nothing as sensitive, so nobody has to be asked`);
  refuseStrangers(name, named, declared);
  const hosts = distinct(subjects.flatMap(({ destinations }) => destinations));
  const { to } = options;
  if (to === undefined && hosts.length === 0) {
    throw usage(
      `the models of ${name} run on this machine, so nothing leaves it; --to HOST or --to ${OUTSIDE_AGENTS} names somewhere else`,
    );
  }
  if (to !== undefined && to !== OUTSIDE_AGENTS && !hosts.includes(to)) {
    const where = hosts.length > 0 ? `those run on ${hosts.join(", ")}` : "those run on this machine";
    process.stderr.write(`${printable(`Note: no model of ${name} runs on a host "${to}" now; ${where}.`)}\n`);
  }
  const decided = { by: systemUser(), at: Date.now(), isAllowed: action === "allow" };
  const rows = subjects.flatMap(({ workflow, kinds, destinations }) =>
    kinds
      .filter((kind) => named.length === 0 || named.includes(kind))
      .flatMap((kind) =>
        (to === undefined ? destinations : [to]).map((destination) => ({ ...decided, workflow, destination, kind })),
      ),
  );
  await store.keepConsents(tenantPrefix(tenant), rows);
  const lines = rows.map(({ workflow, kind, destination }) =>
    action === "allow"
      ? `${kind} of ${workflow} may go to ${placeOf(destination)}.`
      : `${kind} of ${workflow} is withheld from ${placeOf(destination)}.`,
  );
  return print(
    options,
    { consents: rows.map(({ at, ...row }) => ({ ...row, at: isoTime(at) })) },
    lines.map(printable).join("\n"),
  );
}

async function withdraw(name: string, kinds: readonly string[], options: ConsentCommandOptions): Promise<number> {
  const store = openStore(options.db);
  const tenant = options.tenant ?? "";
  const subjects = await subjectsOf(name, store, tenant);
  const workflows = subjects.map(({ workflow }) => workflow);
  // A kind that a release has removed can still be withdrawn.
  const decided = (await store.allConsents(tenant)).filter(({ workflow }) => workflows.includes(workflow));
  refuseStrangers(
    name,
    kinds,
    distinct([...subjects.flatMap((subject) => subject.kinds), ...decided.map(({ kind }) => kind)]),
  );
  const filters = workflows.flatMap((workflow) =>
    (kinds.length > 0 ? kinds : [undefined]).map((kind) => ({
      workflow,
      tenant,
      ...(kind === undefined ? {} : { kind }),
      ...(options.to === undefined ? {} : { destination: options.to }),
    })),
  );
  let withdrawn = 0;
  for (const filter of filters) withdrawn += await store.withdrawConsents(filter);
  const text =
    withdrawn > 0
      ? "Withdrawn. Before the next decision of a task somebody is asked again."
      : `Nothing had been decided about ${name}.`;
  return print(options, { withdrawn }, text);
}

/** @throws USAGE for a kind that there is not. */
function refuseStrangers(name: string, named: readonly string[], known: readonly string[]): void {
  const stranger = named.find((kind) => !known.includes(kind));
  if (stranger === undefined) return;
  throw usage(`${name} declares no "${stranger}"; it has: ${known.join(", ") || "nothing that is sensitive"}`);
}

/** A workflow that decisions are about. */
interface Subject {
  readonly workflow: string;
  /** The kinds of data that it declares. */
  readonly kinds: readonly string[];
  /** The hosts elsewhere that its models run on. */
  readonly destinations: readonly string[];
}

/**
 * What a name stands for: a graph, for its workflow and those within it; or one workflow, of a graph that is declared
 * here, or else as far as decisions about it tell.
 *
 * @throws UNKNOWN_GRAPH.
 */
async function subjectsOf(name: string, store: TaskStore, tenant: string): Promise<readonly Subject[]> {
  try {
    return subjectsIn(await loadGraph(name, store));
  } catch (unknownGraph) {
    if (!isWorkflowError(unknownGraph, "UNKNOWN_GRAPH")) throw unknownGraph;
    const found: Subject[] = [];
    for (const id of Object.keys(declaredGraphs())) {
      // One that cannot be loaded is none of this command's business.
      const graph = await loadGraph(id, store).catch(() => null);
      if (graph) found.push(...subjectsIn(graph).filter(({ workflow }) => workflow === name));
    }
    const decided = (await store.allConsents(tenant)).filter(({ workflow }) => workflow === name);
    if (found.length === 0 && decided.length === 0) throw unknownGraph;
    return [
      {
        workflow: name,
        kinds: distinct(found.length > 0 ? found.flatMap(({ kinds }) => kinds) : decided.map(({ kind }) => kind)),
        destinations: distinct(
          found.length > 0
            ? found.flatMap(({ destinations }) => destinations)
            : decided.map(({ destination }) => destination),
        ),
      },
    ];
  }
}

function distinct(names: readonly string[]): readonly string[] {
  return [...new Set(names)];
}

/** A graph's workflow and those within it. */
function subjectsIn(graph: WorkflowGraph): readonly Subject[] {
  const { workflow, model, planner, consent } = graph.runtime;
  return workflowsWithin(workflow).map((each) => {
    const own = Object.values(each.steps).flatMap((step) => [step.model ?? [], step.plan?.planner ?? []].flat());
    const models = [model, planner, ...own].filter((some) => some !== undefined);
    const elsewhere = models.map((some) => destinationOf(some, consent.localHosts)).filter(({ isLocal }) => !isLocal);
    return {
      workflow: each.name,
      kinds: [...sensitiveSources(each).keys()],
      destinations: distinct(elsewhere.map((destination) => destination.name)),
    };
  });
}
