import { z } from "zod";
import type { State } from "../state/fields.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { moves } from "../workflow/next-step.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

/**
 * The steps that a decision may name: those open now, and those that its own patch can open.
 * (Whether it did is checked when the decision is admitted.)
 */
export function offeredMoves(workflow: AnyWorkflow, step: string, state: State): readonly string[] {
  const writes = workflow.steps[step]?.writes ?? [];
  return moves(workflow, step, state).flatMap(({ to, closed }) => {
    if (!closed) return [to];
    const canOpen =
      closed.code === "GUARD" ? writes.length > 0 : closed.fields?.every((field) => writes.includes(field));
    return canOpen ? [to] : [];
  });
}

/**
 * The JSON schema of a decision in one step. `next` is an enumeration of the offered steps, `patch`
 * has only the fields that the step may write. Every property is required and nullable, since
 * strict output modes allow nothing else; null means unchanged.
 *
 * @returns the schema, and whether a strict output mode can enforce it.
 */
export function decisionSchema(
  workflow: AnyWorkflow,
  step: string,
  state: State,
): { schema: JsonSchema; strict: boolean } {
  const declared = workflow.steps[step];
  const writes = (declared?.writes ?? []).filter((name) => !workflow.state[name]?.rules.runtimeOnly);
  const clearable = writes.filter((name) => workflow.state[name]?.rules.clearable);
  const offered = offeredMoves(workflow, step, state);
  let strict = true;
  const patch: Record<string, JsonSchema> = {};
  for (const name of writes) {
    const field = workflow.state[name];
    if (!field) continue;
    const derived = fieldSchema(field.schema);
    strict &&= derived.strict;
    patch[name] = nullable({
      ...derived.schema,
      ...(field.rules.description ? { description: field.rules.description } : {}),
    });
  }
  const text = (description: string): JsonSchema => ({ type: ["string", "null"], description });
  const properties: Record<string, JsonSchema> = {
    reasoning: text("thinking that you need; it is not kept"),
    because: text("one sentence why"),
    ...(writes.length > 0 ? { patch: nullable(closedObject(patch)) } : {}),
    ...(clearable.length > 0 ? { clear: nullable({ type: "array", items: { type: "string", enum: clearable } }) } : {}),
    ...(offered.length > 0 ? { next: { type: ["string", "null"], enum: [...offered, null] } } : {}),
    ask: text("a question to the user"),
    reply: text("a text to the user"),
  };
  return { schema: closedObject(properties), strict };
}

function closedObject(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

function nullable(schema: JsonSchema): JsonSchema {
  const { description, ...rest } = schema;
  return { anyOf: [rest, { type: "null" }], ...(description === undefined ? {} : { description }) };
}

// Deriving a JSON schema takes tens of microseconds and never changes for a given zod schema.
const derived = new WeakMap<z.ZodType, { schema: JsonSchema; strict: boolean }>();

function fieldSchema(schema: z.ZodType): { schema: JsonSchema; strict: boolean } {
  let known = derived.get(schema);
  if (!known) {
    const { $schema: _dialect, ...json } = z.toJSONSchema(schema) as Record<string, unknown>;
    known = toStrict(json);
    derived.set(schema, known);
  }
  return known;
}

// Keywords that strict output modes reject; our own check of the patch still enforces them.
const DROPPED = new Set(["minLength", "maxLength", "default", "propertyNames", "uniqueItems", "$schema"]);

function toStrict(schema: Readonly<Record<string, unknown>>): { schema: JsonSchema; strict: boolean } {
  let strict = !("oneOf" in schema) && !("allOf" in schema) && !("not" in schema) && Object.keys(schema).length > 0;
  const convert = (item: unknown): JsonSchema => {
    const inner = toStrict(item as Record<string, unknown>);
    strict &&= inner.strict;
    return inner.schema;
  };
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (DROPPED.has(key)) continue;
    if (key === "items" || key === "additionalProperties")
      result[key] = typeof value === "object" ? convert(value) : value;
    else if (key === "anyOf" || key === "oneOf" || key === "allOf") result[key] = (value as unknown[]).map(convert);
    else if (key === "$defs")
      result[key] = Object.fromEntries(Object.entries(value as object).map(([name, item]) => [name, convert(item)]));
    else if (key !== "properties") result[key] = value;
  }
  if (typeof schema.additionalProperties === "object") strict = false;
  if (schema.properties) {
    const required = new Set(schema.required as string[] | undefined);
    const properties = Object.entries(schema.properties).map(([name, item]): [string, JsonSchema] => {
      const converted = convert(item);
      // Nested absent properties mean unchanged too, so each may be null.
      return [name, required.has(name) && "const" in converted ? converted : nullable(converted)];
    });
    Object.assign(result, closedObject(Object.fromEntries(properties)));
  }
  return { schema: result, strict };
}
