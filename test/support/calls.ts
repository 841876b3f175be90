import type { State } from "../../src/state/fields.ts";
import type { CallContext } from "../../src/tools/call.ts";
import type { AnyTool } from "../../src/workflow/tool.ts";
import { runCall } from "../../src/tools/call.ts";

/** What a body gets outside of any task. */
export function callContext(state: State = {}): CallContext {
  return {
    taskId: "t",
    step: "work",
    idempotencyKey: "t/1.0/abcdef",
    clients: {},
    clock: { now: () => 0 },
    artifacts: { read: async () => null, list: async () => [] },
    state,
  };
}

/** Runs one call of a tool as `act` would. */
export function run(tool: AnyTool, args: Record<string, unknown> = {}, aborted?: AbortSignal) {
  return runCall("1.0", { tool: "work", args }, tool, callContext(), aborted);
}
