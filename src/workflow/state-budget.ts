import { jsonBytes } from "../internal/json.ts";
import type { State } from "../state/fields.ts";
import type { Refusal } from "../state/patch.ts";
import type { AnyWorkflow } from "./define.ts";

/** The size of a state as JSON, and its largest field. Pure. */
export function stateSize(state: State): { readonly bytes: number; readonly largest: string; readonly of: number } {
  const sizes = Object.entries(state).map(([name, value]) => ({ name, bytes: jsonBytes(value) }));
  const [largest] = sizes.toSorted((a, b) => b.bytes - a.bytes);
  return { bytes: jsonBytes(state), largest: largest?.name ?? "", of: largest?.bytes ?? 0 };
}

/** Why a changed state is refused for its size; null where it fits. Pure. */
export function stateFault(
  { stateBudget }: AnyWorkflow,
  { state, changes }: { readonly state: State; readonly changes: Readonly<Record<string, unknown>> },
): Refusal | null {
  if (Object.keys(changes).length === 0 || jsonBytes(state) <= stateBudget.maxBytes) return null;
  const { bytes, largest, of } = stateSize(state);
  const reason = `the state would have ${bytes} bytes, at most ${stateBudget.maxBytes} are allowed; "${largest}" has ${of}: shorten it, big things belong into artifacts`;
  return { code: "STATE_TOO_LARGE", field: largest, reason };
}
