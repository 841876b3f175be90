import { z } from "zod";
import type { TaskEvent } from "../../compile/store.ts";
import { WorkflowError } from "../../errors.ts";
import { EXPORT_KEY, hashBefore, isMacOf, signedPart, type StateFile } from "./format.ts";

/** Whether an export is signed, and whether that was checked. */
export type Signature = "not signed" | "signed, but no key given" | "signed and verified";

/** The log of an export, its chain checked. */
export interface CheckedLog {
  readonly lines: readonly string[];
  readonly events: readonly TaskEvent[];
  readonly signature: Signature;
}

const hex = z.string().regex(/^[0-9a-f]{64}$/);
const lineSchema = z.strictObject({
  sequence: z.number().int(),
  revision: z.number().int(),
  kind: z.string(),
  at: z.number(),
  data: z.record(z.string(), z.unknown()),
  previous: hex,
  mac: hex.optional(),
});
type Line = z.infer<typeof lineSchema>;

/**
 * Reads `events.log` and checks its chain and its macs.
 *
 * @param head where the chain ends according to `state.json`, if that can be read.
 * @throws INVALID_EXPORT, naming the first entry that was changed or is missing.
 */
export function readLog(text: string, head: StateFile["log"] | null, key: string | undefined): CheckedLog {
  const lines = text.split("\n");
  const rest = lines.pop();
  if (lines.length === 0 && !rest) throw invalid("events.log is empty", null);
  if (rest !== "") throw invalid(`events.log was cut off within entry ${lines.length + 1}`, lines.length + 1);
  const parsed: Line[] = [];
  for (const [index, line] of lines.entries()) {
    const entry = readLine(line, index + 1, parsed.length);
    if (entry.previous !== hashBefore(lines[index - 1])) {
      const number = blame(lines, index, head);
      throw invalid(`entry ${number} of events.log was changed: the chain breaks there`, number);
    }
    parsed.push(entry);
  }
  const signature = checkMacs(lines, key);
  // What an entry holds is data, as it was parsed; the schema's copy would lose keys such as __proto__.
  const events = lines.map((line) => {
    const { previous: _previous, mac: _mac, ...event } = JSON.parse(line) as Line;
    return event;
  });
  return { lines, events, signature };
}

function readLine(line: string, number: number, before: number): Line {
  let raw: unknown;
  try {
    raw = JSON.parse(line);
  } catch {
    throw invalid(`entry ${number} of events.log was changed: it is no JSON any more`, number);
  }
  const parsed = lineSchema.safeParse(raw);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const why = `${issue?.path.join(".") || "its root"}: ${issue?.message}`;
    throw invalid(`entry ${number} of events.log was changed: it is no entry any more (${why})`, number);
  }
  const { sequence } = parsed.data;
  if (sequence === number) return parsed.data;
  throw invalid(
    sequence > number
      ? `entry ${number} of events.log is missing: entry ${sequence} stands after ${before > 0 ? `entry ${before}` : "nothing"}`
      : `entry ${sequence} of events.log stands where entry ${number} should: entries were moved or repeated`,
    number,
  );
}

/** Which of two neighbours was changed, if they do not fit: the next link tells. */
function blame(lines: readonly string[], index: number, head: StateFile["log"] | null): number {
  const hash = hashBefore(lines[index]);
  const next = lines[index + 1];
  const isWhole = next === undefined ? hash === head?.hash : next.includes(`"previous":"${hash}"`);
  // The first entry has none before it.
  return isWhole && index > 0 ? index : index + 1;
}

function checkMacs(lines: readonly string[], key: string | undefined): Signature {
  const parts = lines.map(signedPart);
  const signed = parts.filter(({ mac }) => mac !== null).length;
  if (key === undefined) return signed === 0 ? "not signed" : "signed, but no key given";
  if (signed === 0) throw unsigned("the export is not signed");
  for (const [index, { body, mac }] of parts.entries()) {
    if (mac === null) throw unsigned(`entry ${index + 1} of events.log is not signed`);
    if (isMacOf(mac, key, body)) continue;
    const why =
      index === 0
        ? `entry 1 of events.log was changed, or ${EXPORT_KEY} is not the key that the export was signed with: its mac does not fit`
        : `entry ${index + 1} of events.log was changed: its mac does not fit`;
    throw invalid(why, index + 1);
  }
  return "signed and verified";
}

/** What is demanded where a key is given: else removing the macs would be all that a forger has to do. */
export function unsigned(what: string): WorkflowError {
  return invalid(`${what}, although ${EXPORT_KEY} is set; unset it to take unsigned exports`, null);
}

function invalid(why: string, entry: number | null): WorkflowError {
  return new WorkflowError("INVALID_EXPORT", why, { details: entry === null ? {} : { entry } });
}
