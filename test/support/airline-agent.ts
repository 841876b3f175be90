import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { INTERRUPT } from "@langchain/langgraph";
import type { ChatResult } from "@langchain/core/outputs";
import { answer, compile, signedIn, type PauseValue, type TaskEvent, type TaskStore } from "statecard";
import type { Action } from "../../graphs/airline/arguments.ts";
import { userIn } from "../../graphs/airline/reading.ts";
import { airlineTools } from "../../graphs/airline/tools.ts";
import { airlineWorld, type World } from "../../graphs/airline/world.ts";
import { airline } from "../../graphs/airline/workflow.ts";
import type { Tools } from "../../src/workflow/tool.ts";
import { consentOf, recordedWorld, type AirlineRun } from "./airline.ts";
import type { RecordedCall, RecordedMessage } from "./trajectories.ts";

const isWrite = (name: string) => (airlineTools as Tools)[name]?.effect === "write";

/**
 * The recorded assistant as a model: it says and calls what was recorded, as decisions of the step that
 * the task is at. Who is talking it knows from what the user has said so far.
 */
class RecordedAgent extends BaseChatModel {
  /** Calls that the table has no place for, since nobody knows yet who is talking. */
  readonly tooEarly: RecordedCall[] = [];
  /** Writes that were proposed. */
  proposed = 0;
  private readonly left: RecordedMessage[];
  private readonly heard: readonly string[];
  private readonly stepOf: () => Promise<string>;

  constructor(messages: readonly RecordedMessage[], heard: readonly string[], stepOf: () => Promise<string>) {
    super({ maxRetries: 0 });
    this.left = messages.filter(({ role }) => role === "assistant");
    this.heard = heard;
    this.stepOf = stepOf;
  }

  override _llmType(): string {
    return "recorded-agent";
  }

  override async _generate(): Promise<ChatResult> {
    const text = JSON.stringify(this.decide(await this.stepOf()));
    return { generations: [{ text, message: new AIMessage(text) }] };
  }

  private decide(step: string): object {
    const userId = this.heard.map(userIn).find((id) => id !== null);
    if (step === "identify" && userId) return { patch: { userId }, next: "gather" };
    const message = this.left[0];
    if (!message) return { patch: { outcome: "the recording ends" }, next: "done" };
    const call = message.toolCalls?.[0];
    if (call && isWrite(call.name) && step === "gather") return { next: "propose" };
    this.left.shift();
    if (!call) return { ask: message.content };
    const { name: tool, args } = call;
    if (step === "propose") {
      this.proposed += 1;
      return { patch: { proposal: { tool, args } }, next: "review" };
    }
    if (tool === "transfer_to_human_agents") return { patch: { summary: args.summary }, next: "transfer" };
    if (step === "gather" || tool === "get_user_details") return { calls: [{ tool, args }] };
    this.tooEarly.push(call);
    return this.decide(step);
  }
}

/** How a recorded run went through the workflow. */
export interface Replay {
  readonly run: AirlineRun;
  readonly world: World;
  /** The calls that the user's latest turn was an explicit yes to, as they were shown. */
  readonly confirmed: readonly Action[];
  /** How many confirmations the user's latest turn was a no to. */
  readonly refused: number;
  /** Why the run stopped before its end. */
  readonly waitsFor: "the user's yes" | "a colleague's yes" | "the user" | null;
  readonly proposed: number;
  readonly tooEarly: readonly RecordedCall[];
  /** What the review said to the proposals that it did not take. */
  readonly objections: readonly string[];
}

/**
 * Puts a recorded run through the compiled workflow: the user's turns are message and answers, the
 * assistant's are decisions. A confirmation is answered by `consentOf` the user's latest turn; where that
 * is unclear, nobody answers, and the run stops there.
 */
export async function replay(run: AirlineRun, store: TaskStore, consent = consentOf): Promise<Replay> {
  const turns = run.messages.filter(({ role }) => role === "user").map(({ content }) => content);
  const world = airlineWorld(recordedWorld);
  const heard: string[] = [];
  const agent = new RecordedAgent(run.messages, heard, async () => (await store.head(run.id))?.execution.step ?? "");
  const graph = compile(airline, { model: agent, store, clients: { world } });
  const config = { configurable: { thread_id: run.id, ...signedIn("the user") } };
  const hear = () => {
    const turn = turns[heard.length];
    if (turn !== undefined) heard.push(turn);
    return turn;
  };

  const confirmed: Action[] = [];
  let refused = 0;
  let waitsFor: Replay["waitsFor"] = null;
  let result = await graph.invoke({ message: hear() ?? "" }, config);
  while (waitsFor === null && result[INTERRUPT]) {
    const pause = result[INTERRUPT][0]?.value as PauseValue | undefined;
    const request = pause?.requests[0];
    if (request?.kind !== "approval") {
      const turn = hear();
      if (turn === undefined) waitsFor = "the user";
      else result = await graph.invoke(answer(result, turn), config);
      continue;
    }
    const latest = consent(heard.at(-1) ?? "");
    if (latest === "unclear") waitsFor = "the user's yes";
    else result = await graph.invoke(answer(result, latest === "yes" ? "approve" : "reject"), config);
    if (latest === "no") refused += 1;
    if (latest !== "yes") continue;
    confirmed.push({ tool: request.tool, args: request.args } as Action);
    if ((request.count ?? 1) > 1) waitsFor = "a colleague's yes";
  }
  const objections = (await store.events(run.id)).flatMap(objectionIn);
  const { proposed, tooEarly } = agent;
  return { run, world, confirmed, refused, waitsFor, proposed, tooEarly, objections };
}

function objectionIn({ kind, data }: TaskEvent): readonly string[] {
  if (kind !== "decision" || data.step !== "review") return [];
  const { next, because } = data.decision as { next: string; because: string };
  return next === "gather" ? [because] : [];
}
