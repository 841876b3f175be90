import { WorkflowError } from "../errors.ts";
import type { Parts, Piece, Scene } from "./scene.ts";
import { partTokens, tokensAtMost } from "./tokens.ts";

/** How small results, and at last field values, are made where a prompt has no room; whole ones first. */
const SQUEEZES = [
  { result: 500, value: Infinity },
  { result: 250, value: 1000 },
  { result: 120, value: 300 },
  { result: 50, value: 80 },
];
/** Turns are left out by so many at once, so that the rest of the prompt keeps its beginning for a while. */
const LEFT_OUT_AT_ONCE = 4;

/**
 * Keeps a prompt within its limit: first the oldest turns after the first one go, then results are cut
 * shorter, at last field values. Step, moves and the latest observation always stay. Pure.
 *
 * @throws CONTEXT_TOO_SMALL with the tokens of each part.
 */
export function fit(
  prefix: string,
  maxTokens: number,
  scene: Scene,
  render: (scene: Scene) => Parts,
): readonly Piece[] {
  let parts = render(scene);
  const squeezed = [scene, ...SQUEEZES.map(({ result, value }) => squeeze(scene, result, value))];
  for (const [index, one] of squeezed.entries()) {
    if (index > 0) parts = render(one);
    const pieces = leaveOut(prefix, maxTokens, parts);
    if (pieces) return pieces;
  }
  throw tooSmall(prefix, maxTokens, parts);
}

function squeeze(scene: Scene, result: number, value: number): Scene {
  return { ...scene, maxResultTokens: Math.min(scene.maxResultTokens, result), maxValueTokens: value };
}

/** All pieces of a prompt, if they are within its limit. Pure. */
export function whole(prefix: string, maxTokens: number, { head, turns, tail }: Parts): readonly Piece[] | null {
  const pieces = [...head, ...turns, ...tail];
  const bytes = pieces.reduce((sum, { text }) => sum + Buffer.byteLength(text) + 1, Buffer.byteLength(prefix));
  // A token is at least a byte, so a short prompt needs no count.
  return bytes <= maxTokens || tokensAtMost(prefix) + tokensOf(pieces) <= maxTokens ? pieces : null;
}

/** The pieces without as many turns as are too many; null where that does not help. */
function leaveOut(prefix: string, maxTokens: number, parts: Parts): readonly Piece[] | null {
  const { head, turns, tail } = parts;
  const all = whole(prefix, maxTokens, parts);
  if (all || turns.length === 0) return all;
  let room = maxTokens - tokensAtMost(prefix) - tokensOf([...head, ...tail]);
  const opening = turns.slice(0, 1);
  const isOpeningKept =
    opening.every(({ role, needsDecision }) => role === "user" && !needsDecision) && tokensOf(opening) <= room / 2;
  if (isOpeningKept) room -= tokensOf(opening);
  const begin = isOpeningKept ? 1 : 0;
  const needsLast = tail.some(({ needsDecision }) => needsDecision);
  for (let from = begin + LEFT_OUT_AT_ONCE; ; from += LEFT_OUT_AT_ONCE) {
    // Results do not stand without their decision, nor the latest results without theirs.
    while (turns[from]?.needsDecision) from++;
    const first = Math.min(from, needsLast ? turns.length - 1 : turns.length);
    const left = turns.slice(begin, first);
    const steps = left.filter(({ section }) => section === "step");
    const kept = [gap(left.length - steps.length), ...steps, ...turns.slice(first)];
    if (tokensOf(kept) <= room) return [...head, ...(isOpeningKept ? opening : []), ...kept, ...tail];
    if (first >= turns.length - 1) return null;
  }
}

function gap(count: number): Piece {
  return { role: "user", section: "conversation", text: `(${count} messages left out)` };
}

/** At most; what joins a piece to the next is counted with it. */
function tokensOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { text }) => sum + tokensAtMost(text), 0);
}

function tooSmall(prefix: string, maxTokens: number, { head, tail }: Parts): WorkflowError {
  const parts = new Map([["instructions", partTokens(prefix)]]);
  for (const { section, text } of [...head, ...tail]) parts.set(section, (parts.get(section) ?? 0) + partTokens(text));
  const told = [...parts].map(([name, tokens]) => `${name} ${tokens}`).join(", ");
  const message = `the prompt has no room: what has to stay in it needs more than ${maxTokens} tokens (${told}); raise view.maxTokens or make instructions, step or state smaller`;
  return new WorkflowError("CONTEXT_TOO_SMALL", message, { details: { maxTokens, parts: Object.fromEntries(parts) } });
}
