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
  const isWrong = (path: string, number: string, quote = "") =>
    !lines.some((line) => line.startsWith(`${path}:${number} `) && line.includes(quote));
  const cited = [...answer.matchAll(CITATION)];
  const wrong = cited.filter(([, path = "", number = "", quote]) => isWrong(path, number, quote));
  if (!wasSentBack && wrong.length > 0) {
    return { sendBack: `this is not in what was read: ${wrong.map(([text]) => text).join("; ")}` };
  }
  if (!wasSentBack && cited.length === 0 && lines.length > 0) {
    return { sendBack: "name the places that were read, as path:line" };
  }
  const told = answer.replace(CITATION, (text, path: string, number: string, quote?: string) =>
    isWrong(path, number, quote) ? `${text} ${MARK}` : text,
  );
  if (told === answer && (reply === null || reply === answer)) return null;
  return { mend: { ...(reply === null ? {} : { reply: told }), ...(patch.answer ? { patch: { answer: told } } : {}) } };
}
