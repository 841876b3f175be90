import { frozenCopy, isPlainObject } from "../internal/json.ts";
import type { Call } from "../state/execution.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import type { AnyTool, InterceptContext, Interceptor } from "../workflow/tool.ts";
import { clean, explainError } from "./tool-error.ts";

/**
 * Asks the tool's and then the workflow's interceptors about a call. The first refusal decides. Whatever is
 * no clear answer refuses too: an exception, a promise, a value of another shape.
 *
 * @returns why the call must not run; null where nobody objects.
 */
export function intercept(
  workflow: Pick<AnyWorkflow, "intercept">,
  tool: Pick<AnyTool, "intercept">,
  call: Call,
  context: InterceptContext,
): string | null {
  const interceptors: readonly Interceptor[] = [...[tool.intercept ?? []].flat(), ...workflow.intercept];
  if (interceptors.length === 0) return null;
  const args = frozenCopy(call.args) as never;
  const seen = Object.freeze({ ...context, state: frozenCopy(context.state) });
  for (const interceptor of interceptors) {
    const reason = refusal(interceptor, args, seen);
    if (reason !== null) return clean(reason);
  }
  return null;
}

function refusal(interceptor: Interceptor, args: never, context: InterceptContext): string | null {
  try {
    const verdict: unknown = interceptor(args, context);
    if (verdict === null || verdict === undefined) return null;
    if (isPlainObject(verdict) && typeof verdict.refuse === "string") return verdict.refuse || "it is not allowed";
    if (verdict instanceof Promise) verdict.catch(() => undefined);
    return "its check failed: it gave no clear answer at once; it has to return { refuse } or null";
  } catch (error) {
    return `its check failed: ${explainError(error).error}`;
  }
}
