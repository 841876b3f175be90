import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { Exposure } from "../compile/consent.ts";
import type { Preview } from "../compile/turns.ts";
import { isWorkflowError, WorkflowError } from "../errors.ts";
import { checkText } from "../people/replies.ts";
import type { Runtime } from "../compile/runtime.ts";
import type { TaskStore } from "../compile/store.ts";
import type { ViewOptions } from "../view/options.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { isModelStep } from "../workflow/next-step.ts";
import { storeForReading } from "./database.ts";
import { EXIT, usage } from "./exit.ts";
import type { CommonOptions } from "./options.ts";
import { switchesOf, techniqueTable, type SwitchOptions } from "./techniques.ts";
import { count } from "./terminal.ts";

export interface PreviewOptions extends CommonOptions, SwitchOptions {
  readonly message?: string;
  readonly show?: boolean;
  readonly provider?: string;
}

/** `statecard preview`: what the model would be sent, under each policy, and what that would cost; without a model. */
export async function previewCommand(name: string, options: PreviewOptions): Promise<number> {
  const store = storeForReading(options.db);
  const message = options.message === undefined ? null : checkText(options.message);
  const switches = switchesOf(options);
  const { taskId, ...runtime } = await workflowOrTask(name, options);
  const { workflow, clock, memories } = runtime;
  const { model, isAsked } = await modelAsked(runtime, taskId === null ? null : store, taskId);
  const view = await viewFor(runtime.view, model, options.provider);
  const { previews } = await import("../compile/turns.ts");
  const { exposureTo } = await import("../compile/consent.ts");
  const exposed = isAsked && model ? await exposureTo(runtime, taskId ?? "", model) : undefined;
  const previewed = await previews(taskId === null ? null : store, workflow, taskId, {
    view,
    now: clock.now(),
    memories,
    message,
    switches,
    withheld: exposed?.withheld ?? [],
  });
  const { all, shares, bar } = previewed;
  const used = all.find(({ policy }) => policy === view.policy);
  const provider = typeof view.provider === "object" ? view.provider.name : (view.provider ?? "unknown");
  if (options.json) {
    const json = all.map(({ policy, tokens, cost, view: { messages, plan } }) => ({
      policy,
      tokens,
      cached: cost.cached,
      paid: paidFor({ tokens, cost }),
      default: policy === view.policy,
      ...(plan ? { plan: { revision: plan.standing.revision, isNew: plan.isNew, decisions: plan.decisions } } : {}),
      ...(options.show ? { messages: messages.map(({ role, content }) => ({ role, content })) } : {}),
    }));
    const consent = exposed ? { withheld: exposed.withheld, asksFirst: exposed.needed?.kinds ?? [] } : null;
    const told = { workflow: workflow.name, taskId, provider, previews: json, facts: shares, bar, consent };
    process.stdout.write(`${JSON.stringify(told, null, 2)}\n`);
    return EXIT.ok;
  }
  const shown = options.show && used ? showSections(used) : "(--show prints the prompt itself, section by section)";
  const lines = [
    `policy       tokens   cached     paid`,
    ...all.map((preview) => policyLine(preview, preview === used)),
    `paid: in uncached tokens' worth, by the cache rule "${provider}" (--provider NAME takes another)`,
    ...(await planLines(all)),
    ...(await consentLines(workflow, exposed)),
    "",
    techniqueTable(previewed, switches),
    shown,
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
  return EXIT.ok;
}

function policyLine({ policy, tokens, cost }: Preview, isUsed: boolean): string {
  const cells = [tokens, cost.cached, paidFor({ tokens, cost })].map((number) => count(number).padStart(8));
  return `${policy.padEnd(10)} ${cells.join(" ")}${isUsed ? "   <- used by this graph" : ""}`;
}

/** What a prompt is paid as: what its cost leaves out is paid in full. */
function paidFor({ tokens, cost }: Pick<Preview, "tokens" | "cost">): number {
  return Math.round(tokens - cost.total + cost.paid);
}

/** What the adaptive policy would do and why. */
async function planLines(previews: readonly Preview[]): Promise<string[]> {
  const plan = previews.find(({ policy }) => policy === "adaptive")?.view.plan;
  if (!plan) return [];
  const { explainChoice } = await import("../view/choice.ts");
  const { revision, scope } = plan.standing;
  const all = scope === "workflow" ? ", with all steps described at the beginning" : "";
  const since = plan.decisions === 1 ? "1 decision" : `${plan.decisions} decisions`;
  const stands = plan.isNew
    ? `new snapshot at revision ${revision}`
    : `snapshot at revision ${revision}, ${since} since`;
  return [`adaptive: ${stands}${all}; ${explainChoice(plan.choice)}`];
}

/** What the model may not be shown, and what a person would be asked before anything is sent. */
async function consentLines(workflow: AnyWorkflow, exposed: Exposure | undefined): Promise<string[]> {
  if (!exposed || exposed.withheld.length === 0) return [];
  const { consentQuestion } = await import("../people/consent-request.ts");
  const { needed, withheld } = exposed;
  return needed
    ? [`asks first: ${consentQuestion(workflow, needed)} (shown as if it were withheld)`]
    : [`withheld from this model: ${withheld.join(", ")} (statecard consent list)`];
}

/** The graph's view with the cache rule that was asked for, else its own, else its model's. */
async function viewFor(view: ViewOptions, model: BaseChatModel | undefined, provider: string | undefined) {
  const { optionsFor } = await import("../compile/view-of.ts");
  if (provider === undefined) return optionsFor(view, model);
  const { CACHE_RULES } = await import("../view/cache-rules.ts");
  const names = Object.keys(CACHE_RULES) as (keyof typeof CACHE_RULES)[];
  const found = names.find((name) => name === provider);
  if (!found) throw usage(`--provider ${provider}: there are ${names.join(", ")}`);
  return { ...view, provider: found };
}

/** The model that is asked for the next decision; of a step that asks none, the graph's. */
async function modelAsked(
  runtime: PreviewedRuntime,
  store: TaskStore | null,
  taskId: string | null,
): Promise<{ readonly model: BaseChatModel | undefined; readonly isAsked: boolean }> {
  const { workflow } = runtime;
  const { decidingModel } = await import("../compile/ask-model.ts");
  const { latestSnapshot } = await import("../compile/turns.ts");
  const stored = store && taskId !== null ? await latestSnapshot(store, workflow, taskId) : null;
  const step = stored?.execution.step ?? workflow.initial;
  const declared = workflow.steps[step];
  const isAsked = declared !== undefined && isModelStep(declared);
  return { model: decidingModel(runtime, step, stored?.state ?? {}), isAsked };
}

type PreviewedRuntime = Pick<
  Runtime,
  "workflow" | "store" | "view" | "clock" | "model" | "planner" | "memories" | "consent"
>;

async function workflowOrTask(
  name: string,
  options: CommonOptions,
): Promise<PreviewedRuntime & { readonly taskId: string | null }> {
  const store = storeForReading(options.db);
  const { graphOfTask, loadGraph } = await import("./graphs.ts");
  try {
    return { ...(await loadGraph(name, store)).runtime, taskId: null };
  } catch (unknownGraph) {
    if (!isWorkflowError(unknownGraph, "UNKNOWN_GRAPH")) throw unknownGraph;
    const head = await store.head(name);
    if (!head)
      throw new WorkflowError("UNKNOWN_GRAPH", `${unknownGraph.message}; nor is there a task of that name`, {
        details: unknownGraph.details,
      });
    return { ...(await graphOfTask(store, name, head.execution.workflow, undefined)).runtime, taskId: name };
  }
}

function showSections(preview: Preview): string {
  return preview.view.sections.map((section) => `\n--- ${section.name} ---\n${section.text}`).join("\n");
}
