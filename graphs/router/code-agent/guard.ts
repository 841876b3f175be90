import type { GuardedOutput } from "statecard";

const CITATION = /(?<![\w./])((?:[\w.-]+\/)*[\w-]+\.(?:c|h|md|ts|js|py)):(\d+)(?:: ?["“](.+?)["”] *$)?/gm;
const MARK = "[not in what was read]";

type Output = Pick<GuardedOutput<never, never>, "reply"> & { readonly patch: { readonly answer?: string | null } };

/**
 * The output guard for answers about code: every place that an answer names was read, and what it quotes stands
 * there. Else the answer goes back once; if it is no better then, those places are marked.
 */
export function placesGuard(
  { reply, patch }: Output,
  state: { readonly lines: readonly string[] | null },
  wasSentBack: boolean,
) {
  const answer = patch.answer ?? reply;
  if (answer === null || answer === undefined) return null;
  const lines = state.lines ?? [];
  const wrong = [...answer.matchAll(CITATION)].flatMap(([cited, path, number, quote]) =>
    lines.some((line) => line.startsWith(`${path}:${number} `) && line.includes(quote ?? "")) ? [] : [cited],
  );
  const citesNothing = lines.length > 0 && !CITATION.test(answer);
  CITATION.lastIndex = 0;
  if (!wasSentBack && wrong.length > 0) return { sendBack: `this is not in what was read: ${wrong.join("; ")}` };
  if (!wasSentBack && citesNothing) return { sendBack: "name the places that were read, as path:line" };
  const told = wrong.reduce((text, cited) => text.replace(cited, `${cited} ${MARK}`), answer);
  if (told === answer && (reply === null || reply === answer)) return null;
  return { mend: { ...(reply === null ? {} : { reply: told }), ...(patch.answer ? { patch: { answer: told } } : {}) } };
}
