import { StateSchema } from "@langchain/langgraph";
import { z } from "zod";
import { frozenCopy } from "../internal/json.ts";
import { executionSchema, newExecution, type Execution } from "../state/execution.ts";
import { pickState } from "../state/fields.ts";
import type { AnyWorkflow, Snapshot } from "../workflow/define.ts";

/**
 * The graph's channels: one typed channel a field, `message` for what a person says, and
 * `execution` for the runtime's record.
 */
export function channelsOf(workflow: AnyWorkflow) {
  const fields = Object.fromEntries(
    Object.entries(workflow.state).map(([name, field]) => [
      name,
      field.schema.nullable().default(null).describe(field.rules.description),
    ]),
  );
  const message = z.string().nullish().default(null).describe("what the user says");
  const start = newExecution(workflow);
  const inputs = Object.fromEntries(Object.entries(fields).filter(([name]) => workflow.input.includes(name)));
  return {
    // The record is written by the runtime only, in one piece; checking it on every write costs more
    // than the rest of a superstep. It is checked where it comes from outside.
    state: new StateSchema({ ...fields, message, execution: z.any().default(start) }),
    input: new StateSchema({ message, ...inputs }),
    output: new StateSchema({ ...fields, execution: executionSchema.default(start) }),
  };
}

/** The values of the graph's channels as nodes get them. */
export type ChannelValues = Readonly<Record<string, unknown>> & {
  readonly execution: Execution;
  readonly message: string | null;
};

/** The task that channel values hold. Its state is a frozen copy: neither steps nor guards can change it. */
export function snapshotOf(workflow: AnyWorkflow, values: ChannelValues): Snapshot {
  return { execution: values.execution, state: frozenCopy(pickState(workflow.state, values)) };
}
