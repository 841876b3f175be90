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
  if (result.status !== "error" && result.status !== "timeout") return [];
  const uses = input.snapshot.execution.toolUse ?? {};
  const failed = Object.hasOwn(uses, result.tool) ? (uses[result.tool]?.failed ?? []) : [];
  const own = failed.length - 1 - failuresAfter;
  const call = failed[own];
  const before = new Set(failed.slice(0, Math.max(own, 0)));
  const isRepeated = call !== undefined && before.delete(call);
  const { errorType, hint, args } = result;
  return [
    ...(errorType ? [`error type: ${quote(errorType, 60)}`] : []),
    // Arguments that were changed stand in the result already.
    ...(call !== undefined && !args ? [`the call: ${quote(call, MAX_LINE)}`] : []),
    ...(isRepeated ? ["the same call has failed in the same way before: change something"] : []),
    ...(hint ? [`what to try: ${quote(hint, MAX_HINT)}`] : []),
    ...(before.size > 0 ? [`failed before: ${[...before].map((line) => quote(line, MAX_LINE)).join("; ")}`] : []),
  ];
}
