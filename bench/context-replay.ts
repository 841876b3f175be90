import { newExecution, type CallResult, type Execution, type Observation } from "../src/state/execution.ts";
import { emptyState, type State } from "../src/state/fields.ts";
import type { Snapshot } from "../src/workflow/define.ts";
import { countDecision, FREE, moveTo, type Decision } from "../src/workflow/record.ts";
import { transcript, type TranscriptEvent, type Turn } from "../src/view/transcript.ts";
import type { Message, Recorded, RecordedCall } from "./context-sets.ts";
import { ANY, kindAskedFor } from "./context-steps.ts";
import { parse, spoken, type ContextSet } from "./context-workflows.ts";

/** One model call, as the task stood before it. */
export interface ModelCall {
  readonly snapshot: Snapshot;
  readonly observation: Observation | null;
  readonly turns: readonly Turn[];
  /** The messages before it, as they were recorded. */
  readonly before: readonly Message[];
  /** What the recorded model then called. */
  readonly calls: readonly RecordedCall[];
  /** Whether it only changes the step: the recorded agent had no steps, and no such call. */
  readonly isMove: boolean;
}

/**
 * Replays a recorded conversation as a task of the set's workflow: what was said and returned becomes
 * the log, what code keeps becomes the state. Nothing of it depends on a policy.
 *
 * Where kinds of request have steps of their own, code sorts by the first message. Later the step changes with
 * calls, as a decision can say, where the user has asked for another kind; else by a decision of its own: before words
 * about another kind, and before a call that is none of the step's.
 */
export function replay(set: ContextSet, { messages }: Recorded): readonly ModelCall[] {
  const task = new ReplayedTask(set);
  for (const [index, message] of messages.entries()) task.take(message, messages.slice(0, index));
  return task.modelCalls;
}

class ReplayedTask {
  readonly modelCalls: ModelCall[] = [];
  private readonly set: ContextSet;
  private readonly events: TranscriptEvent[] = [];
  private state: State;
  private execution: Execution;
  private observation: Observation | null = null;
  private asked: string | null = null;
  /** The kind of request that the user has asked for and the task has not gone to yet. */
  private wanted: string | null = null;
  /** The recorded calls that wait for their results, and where they lead. */
  private open: readonly RecordedCall[] = [];
  private next: string | null = null;
  private results: CallResult[] = [];

  constructor(set: ContextSet) {
    this.set = set;
    this.state = emptyState(set.workflow.state);
    this.execution = { ...newExecution(set.workflow), status: "running" };
  }

  take(message: Message, before: readonly Message[]): void {
    const { role } = message;
    if (role === "system") return;
    const call = this.open.find(({ id }) => id === message.toolCallId) ?? this.open[this.results.length] ?? null;
    if (role === "assistant") this.decide(message, before);
    else if (role === "tool" && call) this.receive(call, message.content);
    this.state = { ...this.state, ...this.set.keep(this.state, message, call) };
    if (role === "user") this.hear(message.content);
  }

  private hear(text: string): void {
    const { asked, set } = this;
    const isFirst = this.events.length === 0;
    this.observation = asked === null ? { kind: "message", text } : { kind: "answer", question: asked, text };
    if (isFirst) this.log("started", { input: { message: text } });
    else this.log("result", { observation: this.observation });
    if (!set.kinds) return;
    const kind = kindAskedFor(set.kinds, text, this.execution.step);
    if (isFirst) this.make({ next: kind ?? ANY }, kind ?? ANY);
    else if (kind !== null) this.wanted = kind;
  }

  private decide(message: Message, before: readonly Message[]): void {
    const decision = decisionOf(message);
    const tools = decision.calls?.map(({ tool }) => tool) ?? [];
    const isHere = (step: string) => tools.every((tool) => this.set.workflow.steps[step]?.tools?.includes(tool));
    // Beside words a decision does not move, and what is said needs the other step's instructions.
    const saysMore = tools.length === 0 ? this.wanted : null;
    const elsewhere = isHere(this.execution.step) ? saysMore : Object.keys(this.set.workflow.steps).find(isHere);
    if (elsewhere) {
      this.show(before, [], true);
      this.make({ next: elsewhere }, elsewhere);
    }
    this.show(before, message.toolCalls ?? [], false);
    this.next = this.wanted;
    this.make({ ...decision, ...(this.next === null ? {} : { next: this.next }) }, this.execution.step);
    this.asked = decision.ask ?? null;
    this.open = message.toolCalls ?? [];
    this.results = [];
  }

  private receive(call: RecordedCall, content: string): void {
    this.results.push(resultOf(call, content, `${this.execution.decisions}.${this.results.length}`));
    if (this.results.length < this.open.length) return;
    this.observation = { kind: "results", results: this.results };
    this.goTo(this.next ?? this.execution.step);
    this.log("result", { observation: this.observation });
  }

  private show(before: readonly Message[], calls: readonly RecordedCall[], isMove: boolean): void {
    const { execution, state, observation } = this;
    this.modelCalls.push({
      snapshot: { execution, state },
      observation,
      turns: transcript(this.events),
      before,
      calls,
      isMove,
    });
  }

  private make(decision: Decision, to: string): void {
    const { step } = this.execution;
    this.execution = countDecision(this.execution, decision, FREE, this.observation);
    this.goTo(to);
    this.log("decision", { step, decision });
  }

  private goTo(step: string): void {
    if (step === this.execution.step) return;
    this.execution = moveTo(this.set.workflow, this.execution, step, null);
    this.wanted = null;
  }

  private log(kind: string, data: Readonly<Record<string, unknown>>): void {
    this.events.push({ kind, data: { to: this.execution.step, ...data }, sequence: this.events.length + 1 });
  }
}

function decisionOf({ content, toolCalls }: Message): Decision {
  if (!toolCalls?.length) return { ask: spoken(content) };
  const calls = toolCalls.map(({ name, args }) => ({ tool: name.replaceAll(".", "_"), args: { ...args } }));
  return { ...(content ? { because: content } : {}), calls };
}

function resultOf({ name }: RecordedCall, content: string, id: string): CallResult {
  return { id, tool: name.replaceAll(".", "_"), status: "ok", value: parse(content) };
}
