import { filesOf, linesOf, type CodeContext, type Shown } from "../../project.ts";

const MAX_PLACES = 20;
const MIN_TEXT = 2;

/** The places of a text in the files of the project. */
export function execute({ text }: { readonly text: string }, { clients }: CodeContext) {
  const wanted = text.trim().toLowerCase();
  if (wanted.length < MIN_TEXT) {
    const output = { type: "TOO_SHORT", error: `${MIN_TEXT} characters at least`, advice: "search for a whole name" };
    return { status: "failure" as const, output };
  }
  const found = filesOf(clients).flatMap((path) =>
    linesOf(clients, path).filter((line) => line.text.toLowerCase().includes(wanted)),
  );
  const output: Shown = { asked: `search "${text.trim()}"`, found: found.length, lines: found.slice(0, MAX_PLACES) };
  return { status: "success" as const, output, metadata: { found: found.length } };
}
