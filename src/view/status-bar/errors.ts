import type { CallResult } from "../../state/execution.ts";
import type { StatusBarInput } from "./input.ts";
import { quote } from "./quote.ts";

const MAX_LINE = 200;
const MAX_HINT = 300;

/**
 * What helps after a failed call, beside its message: the kind of error, the arguments, what to try and what
 * was tried before. All of it is data from outside and quoted.
 */
export function errorLines(input: StatusBarInput, result: CallResult, failuresAfter: number): readonly string[] {
  const uses = input.snapshot.execution.toolUse ?? {};
  const failed = Object.hasOwn(uses, result.tool) ? (uses[result.tool]?.failed ?? []) : [];
  const own = failed.length - 1 - failuresAfter;
  // The record keeps a tool's latest failures only; of a hundred no more are explained.
  const call = failed[own];
  if (call === undefined) return [];
  const before = new Set(failed.slice(0, own));
  const isRepeated = before.delete(call);
  const { errorType, hint, args } = result;
  return [
    ...(errorType ? [`error type: ${quote(errorType, 60)}`] : []),
    // Arguments that were changed stand in the result already.
    ...(args ? [] : [`the call: ${quote(call, MAX_LINE)}`]),
    ...(isRepeated ? ["the same call has failed in the same way before: change something"] : []),
    ...(hint ? [`what to try: ${quote(hint, MAX_HINT)}`] : []),
    ...(before.size > 0 ? [`failed before: ${[...before].map((line) => quote(line, MAX_LINE)).join("; ")}`] : []),
  ];
}
