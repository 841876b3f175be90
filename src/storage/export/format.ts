import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { TaskEvent } from "../../compile/store.ts";
import { canonicalJson } from "../../internal/json.ts";
import type { Answer, Request } from "../../people/requests.ts";
import { executionSchema, type CallResult, type Execution } from "../../state/execution.ts";

/** The environment variable with the key that exports are signed with. */
export const EXPORT_KEY = "STATECARD_EXPORT_KEY";
const FORMAT = 1;
const NOTHING_BEFORE = "0".repeat(64);

/** A person's approval, where several people have to approve. */
export interface ExportedVote {
  readonly who: string;
  readonly answer: Answer;
  readonly at: number;
}

/** A request with everything that people have said to it. */
export interface ExportedRequest {
  readonly decision: number;
  readonly forks: number;
  readonly request: Request;
  readonly answer: Answer | null;
  readonly answeredBy: string | null;
  readonly answeredAt: number | null;
  readonly votes: readonly ExportedVote[];
}

/** A call of the journal; without a result where none was written down. */
export interface ExportedCall {
  readonly key: string;
  readonly digest: string;
  readonly decision: number;
  readonly tool: string;
  /** How often it was begun. */
  readonly attempt: number;
  readonly result: CallResult | null;
}

/** What is needed, beside the log, for a task to go on elsewhere. */
export interface ExportedTask {
  readonly execution: Execution;
  readonly state: Readonly<Record<string, unknown>>;
  /** The opening message, until the first decision has taken it. */
  readonly message: string | null;
  readonly forks: number;
  readonly requests: readonly ExportedRequest[];
  readonly journal: readonly ExportedCall[];
}

/** `state.json`. */
export interface StateFile extends ExportedTask {
  readonly format: typeof FORMAT;
  readonly taskId: string;
  readonly workflow: string;
  readonly version: number;
  /** The task of the child workflow that this one waits for, which is a task of its own. */
  readonly child: string | null;
  readonly log: { readonly count: number; readonly hash: string };
  readonly mac?: string;
}

const answerSchema = z.looseObject({ type: z.enum(["text", "approve", "reject", "edit"]) });
const count = z.number().int().min(0);
const stateFileSchema = z.looseObject({
  format: z.literal(FORMAT),
  taskId: z.string().min(1),
  workflow: z.string(),
  version: z.number(),
  execution: executionSchema,
  state: z.record(z.string(), z.unknown()),
  message: z.string().nullable(),
  forks: count,
  requests: z.array(
    z.looseObject({
      decision: count,
      forks: count,
      request: z.looseObject({ id: z.string(), kind: z.string(), question: z.string(), digest: z.string() }),
      answer: answerSchema.nullable(),
      answeredBy: z.string().nullable(),
      answeredAt: z.number().nullable(),
      votes: z.array(z.looseObject({ who: z.string(), answer: answerSchema, at: z.number() })),
    }),
  ),
  journal: z.array(
    z.looseObject({
      key: z.string(),
      digest: z.string(),
      decision: count,
      tool: z.string(),
      attempt: count,
      result: z.looseObject({ id: z.string(), status: z.string() }).nullable(),
    }),
  ),
  child: z.string().nullable(),
  log: z.looseObject({ count, hash: z.string() }),
  mac: z.string().optional(),
});

/** Reads the text of a `state.json`; the reason where it is none. */
export function parseStateFile(text: string): { ok: true; file: StateFile } | { ok: false; reason: string } {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch (error) {
    return { ok: false, reason: `it is no JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
  const parsed = stateFileSchema.safeParse(raw);
  // The value as it is, not as the schema would make it: it is compared with what the log says.
  if (parsed.success) return { ok: true, file: raw as StateFile };
  const [issue] = parsed.error.issues;
  return { ok: false, reason: `${issue?.path.join(".") || "its root"}: ${issue?.message}` };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function macOf(key: string, text: string): string {
  return createHmac("sha256", key).update(text).digest("hex");
}

/** Whether a mac is the one of this text under this key. */
export function isMacOf(mac: string, key: string, text: string): boolean {
  const [given, right] = [Buffer.from(mac, "hex"), Buffer.from(macOf(key, text), "hex")];
  return given.length === right.length && timingSafeEqual(given, right);
}

/** The lines of `events.log`; each carries the hash of the line before it. */
export function logLines(events: readonly TaskEvent[], key: string | undefined): readonly string[] {
  let previous = NOTHING_BEFORE;
  return events.map(({ sequence, revision, kind, at, data }) => {
    const body = JSON.stringify({ sequence, revision, kind, at, data, previous });
    const line = key === undefined ? body : `${body.slice(0, -1)},"mac":"${macOf(key, body)}"}`;
    previous = sha256(line);
    return line;
  });
}

/** A line taken apart: what its mac covers, and the mac. */
export function signedPart(line: string): { body: string; mac: string | null } {
  const [, body, mac] = /^(.*),"mac":"([0-9a-f]{64})"\}$/s.exec(line) ?? [];
  return body === undefined || mac === undefined ? { body: line, mac: null } : { body: `${body}}`, mac };
}

/** Where the chain of these lines ends. */
export function headOf(lines: readonly string[]): StateFile["log"] {
  const last = lines.at(-1);
  return { count: lines.length, hash: last === undefined ? NOTHING_BEFORE : sha256(last) };
}

/** The hash that a line has to name, given the one before it. */
export function hashBefore(line: string | undefined): string {
  return line === undefined ? NOTHING_BEFORE : sha256(line);
}

/** Puts a task into the form of `state.json`, signed where there is a key. */
export function stateFile(
  taskId: string,
  task: ExportedTask,
  child: string | null,
  log: StateFile["log"],
  key: string | undefined,
): StateFile {
  const { workflow, version } = task.execution;
  const file = { format: FORMAT, taskId, workflow, version, ...task, child, log } as const;
  return key === undefined ? file : { ...file, mac: macOf(key, stateBody(file)) };
}

/** What the mac of a `state.json` covers: everything but itself, however it is laid out. */
export function stateBody({ mac: _mac, ...file }: StateFile): string {
  return canonicalJson(file);
}
