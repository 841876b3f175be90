import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { Command, MemorySaver } from "@langchain/langgraph";
import { signedIn } from "../compile/identity.ts";
import { compile, type CompileOptions, type Verdict } from "../compile/compile.ts";
import { describeTask, type TaskDescription } from "../compile/describe.ts";
import type { TaskEvent } from "../compile/store.ts";
import type { Fields, StateOf } from "../state/fields.ts";
import type { Refusal } from "../state/patch.ts";
import type { Workflow } from "../workflow/define.ts";
import { ReplayingModel } from "./recorded-model.ts";
import { ScriptedModel } from "./scripted-model.ts";

export interface RunWorkflowOptions extends Omit<CompileOptions, "model" | "store" | "checkpointer"> {
  readonly model?: BaseChatModel | null | undefined;
  readonly message?: string;
  /** Input fields. */
  readonly input?: Readonly<Record<string, unknown>>;
  /**
   * What people say to questions and approvals, in order: a text, "approve", "reject", a verdict, or either
   * with the name of who says it. The run ends at the first request without an answer.
   */
  readonly answers?: readonly (string | Verdict | { readonly by: string; readonly say: string | Verdict })[];
}

/** How a run under test went. */
export interface WorkflowRun<F extends Fields = Fields> {
  readonly task: TaskDescription;
  readonly state: StateOf<F>;
  /** The decisions that were refused, in order. */
  readonly refused: readonly Refusal[];
  readonly waiting: NonNullable<TaskDescription["waiting"]>[number] | undefined;
  readonly events: readonly TaskEvent[];
}

/**
 * Runs a workflow in memory to its end or its first unanswered question, for tests. A scripted model
 * must be asked for exactly what its script has.
 *
 * @example
 * const run = await runWorkflow(ticket, { model, message: "hello", answers: ["P1"] });
 * expect(run.waiting?.question).toBe("Shall I start?");
 */
export async function runWorkflow<const F extends Fields, N extends string, const I extends keyof F & string>(
  workflow: Workflow<F, N, I>,
  options: RunWorkflowOptions,
): Promise<WorkflowRun<F>> {
  const { message, input, answers = [], ...compileOptions } = options;
  const graph = compile(workflow, { ...compileOptions, checkpointer: new MemorySaver() });
  const { store } = graph.runtime;
  const config = { configurable: { thread_id: "test" } };
  await graph.invoke({ ...input, ...(message === undefined ? {} : { message }) } as never, config);
  for (const given of answers) {
    const { by, say } = typeof given === "object" && "say" in given ? given : { by: null, say: given };
    const [open] = (await describeTask(store, "test")).waiting ?? [];
    const person = by === null ? {} : signedIn(by);
    const resume = new Command({ resume: open ? { [open.id]: say } : say });
    await graph.invoke(resume as never, { configurable: { ...config.configurable, ...person } });
  }
  if (options.model instanceof ScriptedModel || options.model instanceof ReplayingModel) options.model.assertConsumed();
  const task = await describeTask(store, "test");
  const events = await store.events("test");
  const refused = events.filter((event) => event.kind === "refused").map((event) => event.data as unknown as Refusal);
  return { task, state: task.state as StateOf<F>, refused, waiting: task.waiting?.[0], events };
}
