import { isPlainObject, shorten } from "../internal/json.ts";
import type { Execution, Observation, TaskError } from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { moves, type Move } from "../workflow/next-step.ts";
import { compactMember } from "./compact.ts";
import { renderObservation } from "./observation.ts";
import { focusIn, workIn, type WorkItem } from "./work.ts";

/** A request that is open, as a brief names it. */
export interface BriefRequest {
  readonly id: string;
  readonly kind: string;
  readonly question: string;
  readonly tool?: string;
  readonly args?: Readonly<Record<string, unknown>>;
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number;
}

/** What a brief is made from. */
export interface BriefInput {
  /** Null where it cannot be loaded: then the brief names no goal and no moves. */
  readonly workflow: AnyWorkflow | null;
  readonly execution: Execution;
  readonly state: State;
  /** The true status, which depends on open requests. */
  readonly status: string;
  readonly requests: readonly BriefRequest[];
  readonly lastError: TaskError | null;
  /** What came back last. */
  readonly observation: Observation | null;
  /** Milliseconds since the epoch. */
  readonly updatedAt: number;
  /** The moves of its step, where the state is not whole. */
  readonly moves?: readonly Move[];
  /** How much is told of what came back last; enough to know what it was unless set. */
  readonly latestTokens?: number;
}

/** What somebody needs who takes a task over, and nothing of how it came about. */
export interface Brief {
  readonly taskId: string;
  readonly process: string;
  /** The task's own, where its state has a field of that name; else its workflow's. */
  readonly goal: string;
  readonly status: string;
  readonly updatedAt: string;
  readonly step: string;
  readonly instructions: string;
  readonly focus: string | null;
  readonly nextAction: string | null;
  readonly steps: { readonly done: readonly string[]; readonly open: readonly string[] };
  /** The moves that the table has now; with the reason where one is closed. */
  readonly moves: readonly { readonly to: string; readonly closed: string | null }[];
  readonly work: readonly WorkItem[];
  readonly lastError: { readonly message: string; readonly action: string } | null;
  readonly requests: readonly BriefRequest[];
  /** The latest decisions, a line each. */
  readonly recent: readonly string[];
  /** What came back last, between tags: what is in it is data, whatever it says. Empty where nothing has come. */
  readonly latest: string;
  readonly state: State;
  readonly rule: string;
}

const LATEST_TOKENS = 300;

const RULE = "The state below wins over any older conversation, summary or memory of this task.";

/** Makes the hand-off of a task from its state alone. Pure. */
export function briefOf(input: BriefInput): Brief {
  const { workflow, execution, state, status, requests, updatedAt } = input;
  const step = workflow?.steps[execution.step];
  const done = execution.completedSteps;
  const isOver = status === "completed" || status === "cancelled";
  const work = workIn(state);
  return {
    taskId: execution.taskId,
    process: `${execution.workflow} v${execution.version}`,
    goal: typeof state.goal === "string" ? state.goal : (workflow?.goal ?? ""),
    status,
    updatedAt: new Date(updatedAt).toISOString(),
    step: execution.step,
    instructions: step?.instructions ?? "",
    focus: isOver ? null : focusIn(state),
    nextAction: isOver ? null : nextActionIn(input, work),
    steps: {
      done,
      open: isOver
        ? []
        : Object.keys(workflow?.steps ?? {}).filter((name) => !done.includes(name) && name !== execution.step),
    },
    moves: workflow && !isOver ? movesOf(input.moves ?? moves(workflow, execution.step, state)) : [],
    work,
    lastError: errorIn(input),
    requests,
    recent: execution.recent,
    latest: input.observation ? renderObservation(input.observation, input.latestTokens ?? LATEST_TOKENS) : "",
    state,
    rule: RULE,
  };
}

function movesOf(all: readonly Move[]): Brief["moves"] {
  return all.map(({ to, closed }) => ({ to, closed: closed?.reason ?? null }));
}

function nextActionIn({ state, requests, status, execution }: BriefInput, work: readonly WorkItem[]): string | null {
  const [request] = requests;
  if (request) return `${request.kind === "question" ? "answer" : "decide about"} request ${request.id}`;
  if (typeof state.nextAction === "string") return state.nextAction;
  const item = work.find(({ status }) => status === "running") ?? work.find(({ status }) => status === "pending");
  if (item) return item.text;
  return status === "failed" ? `mend what failed at ${execution.step}, then resume` : null;
}

/** The runtime's own error, else one that the workflow keeps in a field of this name. */
function errorIn({ lastError, state }: BriefInput): Brief["lastError"] {
  if (lastError) {
    const action = "look at the message; resume tries again";
    return { message: `${lastError.code} at ${lastError.step}: ${lastError.message}`, action };
  }
  const kept = state.lastError;
  if (typeof kept === "string") return { message: kept, action: "" };
  if (!isPlainObject(kept) || typeof kept.message !== "string" || kept.status === "settled") return null;
  return { message: kept.message, action: typeof kept.action === "string" ? kept.action : "" };
}

const VALUE_CHARACTERS = 500;
const WORK_ITEMS = 30;
/** Fields that have a line of their own in a brief. */
const SAID_ABOVE = ["goal", "focus", "nextAction", "lastError"];

/**
 * A brief as text, for a new session or another agent: a page at most, whatever has happened so far. Pure.
 *
 * @example renderBrief(await briefTask(store, "refactor-k3f9"))
 */
export function renderBrief(brief: Brief): string {
  const { goal, focus, nextAction, steps, lastError, work, requests, recent } = brief;
  const line = (name: string, value: string | null) => (value ? [`${name}: ${plain(value)}`] : []);
  const told = new Set([...SAID_ABOVE, ...work.map(({ field }) => field)]);
  const fields = Object.entries(brief.state).filter(([name, value]) => (value ?? null) !== null && !told.has(name));
  return [
    `Task ${brief.taskId}, ${brief.process}, ${brief.status}, as of ${brief.updatedAt}`,
    brief.rule,
    ...line("goal", goal),
    `step: ${brief.step}${brief.instructions ? ` (${plain(brief.instructions)})` : ""}`,
    ...line("focus", focus),
    ...line("next action", nextAction),
    `steps done: ${steps.done.join(", ") || "none"}`,
    ...line("steps open", steps.open.join(", ")),
    ...line("may go to", brief.moves.map(({ to, closed }) => (closed === null ? to : `(${closed})`)).join(" | ")),
    ...section(
      "work",
      work.slice(0, WORK_ITEMS).map(({ status, text }) => `${status}: ${plain(text)}`),
    ),
    ...line(
      "last error",
      lastError && `${lastError.message}${lastError.action ? `; what to do: ${lastError.action}` : ""}`,
    ),
    ...section("open requests", requests.map(requestLine)),
    ...section("latest decisions", recent.map(plain)),
    ...section(
      "state",
      fields.map(([name, value]) => `${name}:${plain(typeof value === "string" ? ` ${value}` : compactMember(value))}`),
    ),
    ...(brief.latest ? ["what came back last:", brief.latest] : []),
  ].join("\n");
}

function requestLine({ id, kind, question, tool = "", args = {}, expiresAt }: BriefRequest): string {
  const until = expiresAt === undefined ? "" : `, until ${new Date(expiresAt).toISOString()}`;
  return `${id} (${kind}${until}): ${askedOnce(kind, question, tool, args).map(plain).join(" ")}`;
}

/** The question and the call that it is about, which most questions begin with in other words. */
function askedOnce(kind: string, question: string, tool: string, args: object): readonly string[] {
  if (tool === "") return [question];
  const call = `${tool} ${JSON.stringify(args)}`;
  const isTold = question === tool || [": ", " was begun "].some((next) => question.startsWith(tool + next));
  // Such a question of an approval is nothing else. In words, long arguments are cut.
  if (isTold) return kind === "approval" ? [call] : question.includes("…") ? [question, call] : [question];
  return [question, call];
}

function section(name: string, lines: readonly string[]): readonly string[] {
  return lines.length > 0 ? [`${name}:`, ...lines.map((line) => `  ${line}`)] : [];
}

/** On one line, so that no value can be taken for a line of the brief, and not longer than needed. */
function plain(text: string): string {
  return shorten(text.replaceAll(/\s*[\n\r\u2028\u2029]\s*/g, " / ").replaceAll(/\p{Cc}/gu, " "), VALUE_CHARACTERS);
}
