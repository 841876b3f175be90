import { z } from "zod";
import { digest } from "../internal/digest.ts";
import type { Field } from "../state/fields.ts";
import type { AnyWorkflow } from "./define.ts";
import { targets } from "./next-step.ts";

const digests = new WeakMap<AnyWorkflow, string>();

/**
 * A fingerprint of what a stored task depends on: fields with their schemas and rules, tools with
 * their parameters, and the table of steps. Instructions, models and the bodies of functions are not part of it.
 */
export function schemaDigest(workflow: AnyWorkflow): string {
  let known = digests.get(workflow);
  if (known === undefined) {
    const { name, version, initial, state, tools, checks, steps } = workflow;
    known = digest({
      name,
      version,
      initial,
      state: Object.fromEntries(
        Object.entries(state).map(([field, { schema, rules }]) => {
          // Who may see a value says nothing about what it may be.
          const { sensitive: _kind, ...own } = rules;
          return [field, [shape(schema), own]];
        }),
      ),
      // Calls may be pending, so what they may be counts like the state; rules count by their names.
      tools: Object.fromEntries(Object.entries(tools).map(([tool, { parameters }]) => [tool, shape(parameters)])),
      checks: Object.keys(checks),
      steps: Object.fromEntries(
        Object.entries(steps).map(([step, { final, requires, tools: usable, workflow: child, ...rest }]) => [
          step,
          {
            final: final ?? false,
            requires: requires ?? [],
            to: targets(rest),
            writes: rest.writes ?? null,
            tools: usable ?? [],
            workflow: child?.name ?? null,
          },
        ]),
      ),
    });
    digests.set(workflow, known);
  }
  return known;
}

function shape(schema: Field<unknown>["schema"]): unknown {
  try {
    return z.toJSONSchema(schema, { unrepresentable: "any" });
  } catch {
    return "unknown";
  }
}
