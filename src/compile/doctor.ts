import { canonicalJson, shorten } from "../internal/json.ts";
import { isExpired } from "../people/expiry.ts";
import type { Execution, TaskError, TaskStatus } from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import type { Policy } from "../view/options.ts";
import { focusIn, workIn } from "../view/work.ts";
import { stepLimit, type AnyWorkflow } from "../workflow/define.ts";
import type { WaitingRequest } from "./describe.ts";
import type { TaskEvent, TaskOwner } from "./store.ts";

/** A task as a check-up sees it. */
export interface Patient {
  /** Null where it cannot be loaded: then what depends on its definition is not looked at. */
  readonly workflow: AnyWorkflow | null;
  readonly execution: Execution;
  readonly state: State;
  readonly status: TaskStatus;
  readonly waiting: readonly WaitingRequest[];
  readonly lastError: TaskError | null;
  readonly quarantine: string | null;
  readonly events: readonly TaskEvent[];
  /** Milliseconds since the epoch: when something last happened to it, and now. */
  readonly updatedAt: number;
  readonly now: number;
  /** The process that runs it now; null where none does. */
  readonly owner: TaskOwner | null;
  /** What its prompts show of the past; null where that is not known. */
  readonly policy: Policy | null;
  /** The files that are not as the task knows them. */
  readonly drift: readonly string[];
}

/** Something that is wrong with a task. */
export interface Trouble {
  /** What it is, a word that does not change. */
  readonly code:
    | "QUARANTINED"
    | "FAILED"
    | "NO_FOCUS"
    | "VAGUE_STEPS"
    | "TOKENS_RISE"
    | "FILES_CHANGED"
    | "STUCK"
    | "LEFT_BEHIND"
    | "NO_PROGRESS"
    | "REPEATED_CALLS"
    | "REFUSED_OFTEN"
    | "UNKNOWN_CALL"
    | "REQUEST_EXPIRED";
  /** What it is seen by. */
  readonly evidence: string;
  /** What to do about it. */
  readonly action: string;
}

type Check = (patient: Patient) => readonly Trouble[];

/**
 * Looks for the usual troubles of a task in its state and log. Pure.
 *
 * @returns what was found, the most pressing first; nothing where the task is well.
 */
export function diagnose(patient: Patient): readonly Trouble[] {
  return CHECKS.flatMap((check) => check(patient));
}

/** A task on which nobody works for so long was left behind. */
const LEFT_AFTER_MS = 60_000;
/** One that is run, and of which nothing was written down for so long, hangs. */
const STUCK_AFTER_MS = 600_000;
/** So many decisions in a row without anything new are no progress. */
const IDLE_DECISIONS = 5;
const SAME_CALLS = 4;
const STALE_CALLS = 3;
const REFUSALS = 3;
/** Fewer decisions tell nothing about a trend. */
const TREND_DECISIONS = 6;
const RISE = 1.5;
/** A step of a plan says what is done to what. */
const LEAST_WORDS = 2;
const words = new Intl.Segmenter("en", { granularity: "word" });
const VAGUE = /\b(?:stuff|things?|etc|various|misc|somehow|everything|whatever|work on it|and so on|tbd|todo)\b/i;

const isOver = ({ status }: Patient) => status === "completed" || status === "cancelled";

const quarantined: Check = ({ quarantine }) =>
  quarantine === null
    ? []
    : [{ code: "QUARANTINED", evidence: quarantine, action: "statecard migrate --dry-run says what can be done" }];

const failed: Check = ({ status, lastError }) =>
  status !== "failed" || !lastError
    ? []
    : [
        {
          code: "FAILED",
          evidence: `${lastError.code} at ${lastError.step}: ${shorten(lastError.message, 300)}`,
          action: "mend what the message names; resume tries again from the last commit",
        },
      ];

const stuck: Check = (patient) => {
  const { owner, events, execution, updatedAt, now } = patient;
  if (isOver(patient) || owner === null) return [];
  // What runs calls writes each down, and commits when all are done.
  const since = Math.max(updatedAt, owner.since ?? 0, events.at(-1)?.at ?? 0);
  if (now - since < STUCK_AFTER_MS) return [];
  return [
    {
      code: "STUCK",
      evidence: `process ${owner.pid} on ${owner.host} runs ${execution.step}, and has committed nothing since ${new Date(since).toISOString()} (${minutes(now - since)} min)`,
      action:
        "if it takes that long, wait; else cancel the task, or end that process and resume. A tool's timeoutMs, and --step-timeout of serve, worker and batch, end what hangs",
    },
  ];
};

const minutes = (ms: number) => Math.floor(ms / 60_000);

const leftBehind: Check = ({ status, owner, updatedAt, now }) => {
  const isOpen = status === "running" || status === "created";
  if (!isOpen || owner || now - updatedAt < LEFT_AFTER_MS) return [];
  return [
    {
      code: "LEFT_BEHIND",
      evidence: `it waits for nobody, no process runs it, and nothing has happened for ${minutes(now - updatedAt)} min`,
      action: "resume it; it goes on at its last commit. Where an agent outside decides, that one has to go on",
    },
  ];
};

const unknownCalls: Check = ({ waiting, events, owner }) => {
  const asked = waiting.filter(({ kind }) => kind === "unknown");
  const returned = new Set(events.filter(({ kind }) => kind === "returned").map(({ data }) => data.key));
  const begun =
    owner || asked.length > 0 ? [] : events.filter(({ kind, data }) => kind === "call" && !returned.has(data.key));
  const named = [
    ...asked.map(({ id, tool }) => `${tool} (request ${id})`),
    ...new Set(begun.map(({ data }) => `${String(data.tool)} (call ${String(data.key)})`)),
  ];
  if (named.length === 0) return [];
  const action =
    asked.length > 0
      ? "find out whether it happened; resume with --approve if it did, with --reject if it did not"
      : "resume the task: the tool is asked whether it happened, else a person is";
  return [{ code: "UNKNOWN_CALL", evidence: `begun and left no result: ${named.join(", ")}`, action }];
};

const expiredRequests: Check = ({ waiting, now }) =>
  waiting
    .filter((request) => isExpired(request, now))
    .map(({ id, kind, expiresAt = 0 }) => ({
      code: "REQUEST_EXPIRED" as const,
      evidence: `${kind} ${id} could be answered until ${new Date(expiresAt).toISOString()}`,
      action: "resume the task without an answer: it takes the way that it has for that; wakeDue does so for all tasks",
    }));

const drift: Check = (patient) => {
  const marked = Array.isArray(patient.state.resources) ? (patient.state.resources as readonly unknown[]) : [];
  const known = marked.flatMap((one) => (isMarked(one) ? [one.path] : []));
  const paths = [...new Set([...patient.drift, ...known])];
  if (isOver(patient) || paths.length === 0) return [];
  const evidence = `files changed outside: ${paths.slice(0, 10).join(", ")}${paths.length > 10 ? ` and ${paths.length - 10} more` : ""}`;
  return [
    { code: "FILES_CHANGED", evidence, action: "nothing is written over; have them read again, or put them back" },
  ];
};

function isMarked(one: unknown): one is { readonly path: string } {
  const { path, status } = (one ?? {}) as { readonly path?: unknown; readonly status?: unknown };
  return typeof path === "string" && (status === "changed outside" || status === "gone");
}

const noFocus: Check = (patient) => {
  const { state, waiting } = patient;
  const open = workIn(state).filter(({ status }) => status === "pending");
  if (isOver(patient) || waiting.length > 0 || open.length === 0 || focusIn(state) !== null) return [];
  return [
    {
      code: "NO_FOCUS",
      evidence: `${open.length} items are open in ${open[0]?.field}, and none is being worked on`,
      action: "have the step set one item to running (or in_progress), or keep a field focus by code",
    },
  ];
};

const vagueSteps: Check = (patient) => {
  const { workflow, state } = patient;
  if (isOver(patient)) return [];
  // Not by blanks: Chinese and Japanese have none between words.
  const wordsIn = (text: string) => [...words.segment(text)].filter(({ isWordLike }) => isWordLike).length;
  const isVague = (text: string) => VAGUE.test(text) || wordsIn(text) < LEAST_WORDS;
  const items = workIn(state).filter(
    ({ status, text }) => (status === "pending" || status === "running") && isVague(text),
  );
  const silent = Object.entries(workflow?.steps ?? {}).filter(
    ([, { instructions, run, map, workflow: child, final }]) => !instructions && !run && !map && !child && !final,
  );
  return [
    ...(items.length > 0
      ? [
          {
            code: "VAGUE_STEPS" as const,
            evidence: `${items[0]?.field} has ${items.length} vague items: ${items
              .map(({ text }) => JSON.stringify(shorten(text, 60)))
              .slice(0, 5)
              .join(", ")}`,
            action: "have each say what is done to what, and when it is done",
          },
        ]
      : []),
    ...(silent.length > 0 && !workflow?.instructions
      ? [
          {
            code: "VAGUE_STEPS" as const,
            evidence: `steps without instructions: ${silent.map(([name]) => name).join(", ")}`,
            action: "say in each step's instructions what is to be done there",
          },
        ]
      : []),
  ];
};

const repeatedCalls: Check = (patient) => {
  const { events, execution } = patient;
  if (isOver(patient)) return [];
  const tools = new Map(events.flatMap(({ kind, data }) => (kind === "call" ? [[data.key, String(data.tool)]] : [])));
  const times = new Map<string, { tool: string; count: number }>();
  for (const { kind, data } of events) {
    if (kind !== "returned") continue;
    const { status, value } = (data.result ?? {}) as { readonly status?: unknown; readonly value?: unknown };
    // The same arguments may well bring something else, after a change.
    const same = canonicalJson([data.digest, status, value]);
    const known = times.get(same) ?? { tool: tools.get(data.key) ?? "a tool", count: 0 };
    times.set(same, { ...known, count: known.count + 1 });
  }
  const same = [...times.values()].filter(({ count }) => count >= SAME_CALLS);
  const stale = Object.entries(execution.toolUse ?? {}).filter(([, use]) => use.stale >= STALE_CALLS);
  const told = [
    ...same.map(({ tool, count }) => `${tool} ${count} times with the same arguments and result`),
    ...stale.map(([tool, use]) => `the last ${use.stale} calls of ${tool} brought nothing new`),
  ];
  if (told.length === 0) return [];
  const action =
    "give the tool a limit, keep what it brings in a field (onResult), or say in the instructions when to conclude";
  return [{ code: "REPEATED_CALLS", evidence: told.join("; "), action }];
};

const noProgress: Check = (patient) => {
  const { workflow, execution, events } = patient;
  if (isOver(patient)) return [];
  const decisions = events.filter(({ kind }) => kind === "decision").slice(-IDLE_DECISIONS);
  const isIdle = ({ data }: TaskEvent) => {
    const { patch, calls, next } = (data.decision ?? {}) as Readonly<Record<string, unknown>>;
    const isEmpty = Object.values((patch ?? {}) as object).every((value) => value === null);
    return isEmpty && !calls && (!next || next === data.step);
  };
  const made = execution.decisionsByStep[execution.step] ?? 0;
  const limit = workflow ? stepLimit(workflow, execution.step) : Infinity;
  const evidence =
    decisions.length === IDLE_DECISIONS && decisions.every(isIdle)
      ? `the last ${IDLE_DECISIONS} decisions changed nothing and called nothing`
      : made >= limit * 0.8 && made > 2
        ? `${made} of at most ${limit} decisions were made in ${execution.step}`
        : null;
  if (evidence === null) return [];
  return [
    {
      code: "NO_PROGRESS",
      evidence,
      action: "read its brief; answer what it does not know, or correct it by override",
    },
  ];
};

const refusedOften: Check = ({ execution, events }) => {
  const { refused, decisions } = execution;
  if (refused < REFUSALS || refused * 3 < decisions) return [];
  const codes = events.filter(({ kind }) => kind === "refused").map(({ data }) => String(data.code));
  const most = codes.toSorted((a, b) => count(codes, b) - count(codes, a))[0] ?? "";
  return [
    {
      code: "REFUSED_OFTEN",
      evidence: `${refused} answers were refused in ${decisions} decisions, mostly ${most}`,
      action:
        "statecard history shows the reasons; say in the instructions what the rules are, or take a stronger model",
    },
  ];
};

const count = (all: readonly string[], one: string) => all.filter((each) => each === one).length;

/** The smallest of the late prompts against the largest of the early ones: a tail that is cut back does not count. */
const tokensRise: Check = (patient) => {
  const { events, policy } = patient;
  const sizes = events.flatMap(({ kind, data }) => {
    const bytes = kind === "decision" ? (data.measures as { viewBytes?: unknown } | null)?.viewBytes : undefined;
    return typeof bytes === "number" ? [bytes] : [];
  });
  const third = Math.floor(sizes.length / 3);
  if (sizes.length < TREND_DECISIONS) return [];
  const [early, late] = [Math.max(...sizes.slice(0, third)), Math.min(...sizes.slice(-third))];
  if (late < early * RISE) return [];
  const sendsHistory = policy === "history" || policy === "structured";
  const kilobytes = (bytes: number) => `${(bytes / 1000).toFixed(1)} KB`;
  return [
    {
      code: "TOKENS_RISE",
      evidence: `prompts grew from ${kilobytes(early)} to ${kilobytes(late)} in ${sizes.length} decisions${sendsHistory ? `: policy ${policy} still sends the history` : ""}`,
      action: sendsHistory
        ? 'compile with view: { policy: "adaptive" }; statecard preview compares the policies for this task'
        : "statecard preview --show says which part it is; keep large values as artifacts, and lists short",
    },
  ];
};

/** The most pressing first. */
const CHECKS: readonly Check[] = [
  quarantined,
  failed,
  unknownCalls,
  expiredRequests,
  stuck,
  leftBehind,
  drift,
  noProgress,
  repeatedCalls,
  refusedOften,
  tokensRise,
  noFocus,
  vagueSteps,
];
