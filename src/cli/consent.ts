import { OUTSIDE_AGENTS } from "../compile/consent.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { destinationOf } from "../decision/destination.ts";
import { isoTime } from "../compile/iso-times.ts";
import { systemUser } from "../internal/system-user.ts";
import { openStore } from "../storage/open-store.ts";
import { checkTenant, tenantPrefix } from "../storage/tenants.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { sensitiveSources } from "../workflow/sensitive.ts";
import { storeForReading } from "./database.ts";
import { EXIT, usage } from "./exit.ts";
import { loadGraph } from "./graphs.ts";
import type { CommonOptions, ConsentAction, ConsentCommandOptions } from "./options.ts";
import { ago, printable } from "./terminal.ts";

/** `statecard consent`: what may go to models elsewhere, by workflow, for all of its tasks. */
export function consentCommand(
  action: ConsentAction,
  graph: string | undefined,
  kinds: readonly string[],
  options: ConsentCommandOptions,
): Promise<number> {
  if (action === "list") {
    if (graph !== undefined) throw usage("consent list takes no graph; it lists all of them");
    return listConsents(options);
  }
  if (graph === undefined) throw usage(`consent ${action} needs a graph: statecard consent ${action} GRAPH`);
  return action === "withdraw" ? withdraw(graph, kinds, options) : decide(action, graph, kinds, options);
}

function print(options: CommonOptions, json: unknown, text: string): number {
  process.stdout.write(`${options.json ? JSON.stringify(json, null, 2) : text}\n`);
  return EXIT.ok;
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
      `${tenant && `@${tenant}  `}${workflow}  ${kind}  to ${destination}: ${isAllowed ? "allowed" : "withheld"}  by ${by ?? "somebody who was not signed in"}, ${ago(now - at)} ago`,
    ),
  );
  return print(options, { consents }, lines.join("\n") || "Nobody has been asked yet.");
}

async function decide(
  action: "allow" | "withhold",
  name: string,
  named: readonly string[],
  options: ConsentCommandOptions,
): Promise<number> {
  const store = openStore(options.db);
  const graph = await loadGraph(name, store);
  const tenant = options.tenant === undefined ? "" : checkTenant(options.tenant);
  const decided = { by: systemUser(), at: Date.now(), isAllowed: action === "allow" };
  const rows = workflowsOf(graph).flatMap(({ workflow, destinations }) =>
    [...sensitiveSources(workflow).keys()]
      .filter((kind) => named.length === 0 || named.includes(kind))
      .flatMap((kind) =>
        (options.to === undefined ? destinations : [options.to]).map((destination) => ({
          ...decided,
          workflow: workflow.name,
          destination,
          kind,
        })),
      ),
  );
  const declared = new Set(workflowsOf(graph).flatMap(({ workflow }) => [...sensitiveSources(workflow).keys()]));
  const stranger = named.find((kind) => !declared.has(kind));
  if (declared.size === 0) throw usage(`${name} declares nothing as sensitive, so nobody has to be asked`);
  if (stranger !== undefined) throw usage(`${name} declares no "${stranger}"; it has: ${[...declared].join(", ")}`);
  if (rows.length === 0) {
    throw usage(
      `the models of ${name} run on this machine, so nothing leaves it; --to HOST or --to ${OUTSIDE_AGENTS} names somewhere else`,
    );
  }
  await store.keepConsents(tenantPrefix(tenant), rows);
  const lines = rows.map(({ workflow, kind, destination }) =>
    action === "allow"
      ? `${kind} of ${workflow} may go to ${destination}.`
      : `${kind} of ${workflow} is withheld from ${destination}.`,
  );
  return print(options, { consents: rows.map(({ at, ...row }) => ({ ...row, at: isoTime(at) })) }, lines.join("\n"));
}

async function withdraw(name: string, kinds: readonly string[], options: ConsentCommandOptions): Promise<number> {
  const store = openStore(options.db);
  const workflows = workflowsOf(await loadGraph(name, store)).map(({ workflow }) => workflow.name);
  const filters = workflows.flatMap((workflow) =>
    (kinds.length > 0 ? kinds : [undefined]).map((kind) => ({
      workflow,
      tenant: options.tenant ?? "",
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

/** A graph's workflow and those within it, each with the hosts elsewhere that its models run on. */
function workflowsOf(graph: WorkflowGraph): readonly { workflow: AnyWorkflow; destinations: readonly string[] }[] {
  const { workflow, model, planner, consent } = graph.runtime;
  const all: AnyWorkflow[] = [];
  const collect = (each: AnyWorkflow) => {
    if (all.includes(each)) return;
    all.push(each);
    for (const { workflow: child, map } of Object.values(each.steps)) {
      const inner = child ?? map?.workflow;
      if (inner) collect(inner);
    }
  };
  collect(workflow);
  return all.map((each) => {
    const own = Object.values(each.steps).flatMap((step) => [step.model, step.plan?.planner]);
    const models = [model, planner, ...own].filter((some) => some !== undefined);
    const elsewhere = models.map((some) => destinationOf(some, consent.localHosts)).filter(({ isLocal }) => !isLocal);
    return { workflow: each, destinations: [...new Set(elsewhere.map((destination) => destination.name))] };
  });
}
