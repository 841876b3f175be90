import { filesOf, linesOf, type CodeContext, type Shown } from "../../project.ts";

const MAX_LINES = 40;

/** A piece of a file of the project. Only files that it lists can be read, so no path leads out. */
export function execute({ path, from }: { readonly path: string; readonly from: number }, { clients }: CodeContext) {
  const files = filesOf(clients);
  if (!files.includes(path)) {
    const advice = `there are: ${files.slice(0, 20).join(", ")}`;
    return { status: "failure" as const, output: { type: "NOT_FOUND", error: `the project has no ${path}`, advice } };
  }
  const lines = linesOf(clients, path);
  const piece = lines.filter(({ number }) => number >= from && number < from + MAX_LINES);
  const output: Shown = { asked: `read ${path} from ${from}`, found: piece.length, lines: piece };
  return { status: "success" as const, output, metadata: { lines: lines.length } };
}
