import { WorkflowError } from "../errors.ts";
import { isPlainObject, jsonEqual } from "../internal/json.ts";
import { pickState } from "../state/fields.ts";
import type { AnyWorkflow } from "../workflow/define.ts";

/**
 * Checks one update of LangGraph's `updateState`: declared fields only, legal values, nothing that
 * belongs to the runtime. Pure.
 *
 * @returns the values after it.
 * @throws ILLEGAL_STATE or INVALID_UPDATE, naming the field.
 */
export function checkEdit(
  workflow: AnyWorkflow,
  base: Readonly<Record<string, unknown>>,
  update: { values?: unknown; asNode?: string },
): Record<string, unknown> {
  const { values, asNode } = update;
  if (asNode !== undefined && !Object.hasOwn(workflow.steps, asNode) && asNode !== "act") {
    throw new WorkflowError(
      "ILLEGAL_STATE",
      `an update as node "${asNode}" would go around the transition table; leave asNode out`,
    );
  }
  if (!isPlainObject(values)) {
    throw new WorkflowError(
      "ILLEGAL_STATE",
      "an update without values would only move the task; values is an object of fields",
    );
  }
  for (const [name, value] of Object.entries(values)) {
    if (name === "execution" || name === "message") {
      throw new WorkflowError(
        "ILLEGAL_STATE",
        `"${name}" belongs to the runtime; only the declared fields can be changed`,
        { details: { field: name } },
      );
    }
    const field = Object.hasOwn(workflow.state, name) ? workflow.state[name] : undefined;
    const invalid = (reason: string) =>
      new WorkflowError("INVALID_UPDATE", `"${name}": ${reason}`, { details: { field: name } });
    if (!field) throw invalid(`there is no such field; the fields are: ${Object.keys(workflow.state).join(", ")}`);
    const current = base[name] ?? null;
    if (field.rules.writeOnce && current !== null && !jsonEqual(current, value))
      throw invalid("it already has its value and never changes again");
    if (value === null) {
      if (!field.rules.clearable && current !== null) throw invalid("it cannot be cleared");
      continue;
    }
    const kept = Array.isArray(current) && Array.isArray(value) && jsonEqual(value.slice(0, current.length), current);
    if (field.rules.appendOnly && current !== null && !kept)
      throw invalid("it only ever grows; begin with the present items");
    const checked = field.check(value);
    if (!checked.ok) throw invalid(checked.reason);
  }
  const state = { ...pickState(workflow.state, base), ...values };
  for (const [rule, check] of Object.entries(workflow.checks)) {
    const reason = check(state);
    if (reason) throw new WorkflowError("INVALID_UPDATE", `rule "${rule}": ${reason}`);
  }
  return { ...base, ...values };
}
