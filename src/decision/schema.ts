import { z } from "zod";
import { isPlainObject } from "../internal/json.ts";
import { EXPECTATION_KINDS } from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { isModelStep, moves, targets } from "../workflow/next-step.ts";
import type { PhaseKind } from "../workflow/plan.ts";

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
 * How much a decision's schema says of tools' arguments. `full`: their schemas, which a strict output mode can
 * enforce. `open`: any object, which is many tokens less.
 */
export type ToolArguments = "full" | "open";

/** For what a decision's schema is made: the step that decides, as it stands, or all of the workflow. */
export type SchemaScope = "step" | "workflow";

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
  phase: PhaseKind | null = null,
  toolArguments: ToolArguments = "full",
): { schema: JsonSchema; strict: boolean } {
  const declared = workflow.steps[step];
  const isPlan = phase === "plan";
  const mayCall = phase !== "conclude" && phase !== "close";
  const parts: SchemaParts = {
    writes: isPlan ? [] : (declared?.writes ?? []),
    next: isPlan ? [] : offeredMoves(workflow, step, state),
    tools: mayCall ? (declared?.tools ?? []) : [],
    isPlan,
    mayReply: !isPlan,
  };
  return schemaOf(workflow, parts, toolArguments);
}

const wide = new WeakMap<AnyWorkflow, Map<ToolArguments, { schema: JsonSchema; strict: boolean }>>();

/**
 * One JSON schema for the decisions of all steps: every step that some model may name, every field that one may
 * write, every tool. It never changes, so that a provider's cache, in which it stands before the prompt, finds what was
 * sent before a move; what a step really allows is said in the prompt, and checked when the answer is read.
 */
export function workflowSchema(
  workflow: AnyWorkflow,
  toolArguments: ToolArguments = "full",
): { schema: JsonSchema; strict: boolean } {
  const known = wide.get(workflow) ?? new Map<ToolArguments, { schema: JsonSchema; strict: boolean }>();
  wide.set(workflow, known);
  let made = known.get(toolArguments);
  if (!made) {
    const steps = Object.values(workflow.steps).filter(isModelStep);
    const union = (of: (step: (typeof steps)[number]) => readonly string[]) => [...new Set(steps.flatMap(of))];
    const parts: SchemaParts = {
      writes: union(({ writes = [] }) => writes),
      next: union(targets),
      tools: union(({ tools = [] }) => tools),
      isPlan: steps.some(({ plan }) => plan !== undefined),
      mayReply: true,
    };
    made = schemaOf(workflow, parts, toolArguments);
    known.set(toolArguments, made);
  }
  return made;
}

/** What a schema offers. */
interface SchemaParts {
  readonly writes: readonly string[];
  readonly next: readonly string[];
  readonly tools: readonly string[];
  /** True where calls may have ids, references and expectations. */
  readonly isPlan: boolean;
  readonly mayReply: boolean;
}

function schemaOf(
  workflow: AnyWorkflow,
  { writes: mayWrite, next, tools, isPlan, mayReply }: SchemaParts,
  toolArguments: ToolArguments,
): { schema: JsonSchema; strict: boolean } {
  const writes = mayWrite.filter((name) => !workflow.state[name]?.rules.runtimeOnly);
  const clearable = writes.filter((name) => workflow.state[name]?.rules.clearable);
  let strict = true;
  const definitions: Record<string, JsonSchema> = {};
  const patch: Record<string, JsonSchema> = {};
  for (const name of writes) {
    const field = workflow.state[name];
    if (!field) continue;
    const derived = fieldSchema(field.schema);
    strict &&= derived.strict;
    patch[name] = nullable({
      ...embed(name, derived.schema, definitions),
      ...(field.rules.description ? { description: field.rules.description } : {}),
    });
  }
  const calls = toolArguments === "open" ? openCall(tools, isPlan) : fullCalls(workflow, tools, isPlan, definitions);
  strict &&= calls.strict;
  const text = (description: string): JsonSchema => ({ type: ["string", "null"], description });
  const properties: Record<string, JsonSchema> = {
    reasoning: text("thinking that you need; it is not kept"),
    because: text("one sentence why"),
    ...(writes.length > 0 ? { patch: nullable(closedObject(patch)) } : {}),
    ...(clearable.length > 0 ? { clear: nullable({ type: "array", items: { type: "string", enum: clearable } }) } : {}),
    ...(next.length > 0 ? { next: { type: ["string", "null"], enum: [...next, null] } } : {}),
    ...(tools.length > 0 ? { calls: nullable({ type: "array", items: calls.items }) } : {}),
    ask: text("a question to the user"),
    ...(mayReply ? { reply: text("a text to the user") } : {}),
  };
  const defined = Object.keys(definitions).length > 0 ? { $defs: definitions } : {};
  return { schema: { ...closedObject(properties), ...defined }, strict };
}

interface CallItems {
  readonly items: JsonSchema;
  readonly strict: boolean;
}

/** A call of one of the tools, each with the schema of its arguments. */
function fullCalls(
  workflow: AnyWorkflow,
  tools: readonly string[],
  isPlan: boolean,
  definitions: Record<string, JsonSchema>,
): CallItems {
  const anyOf: JsonSchema[] = [];
  let strict = true;
  for (const name of tools) {
    const tool = workflow.tools[name];
    if (!tool) continue;
    const derived = fieldSchema(tool.parameters);
    strict &&= derived.strict;
    const given = isPlan ? withReferences(derived.schema) : derived.schema;
    const args = embed(`tool.${name}`, given, definitions);
    const call = closedObject({ tool: { type: "string", const: name }, args, ...planned(isPlan) });
    anyOf.push({ ...call, description: tool.description });
  }
  return { items: { anyOf }, strict };
}

/** A call of any of the tools; the prompt has their signatures, and arguments are checked when the answer is read. */
function openCall(tools: readonly string[], isPlan: boolean): CallItems {
  const tool = { type: "string", enum: tools };
  const items = closedObject({ tool, args: { type: "object" }, ...planned(isPlan) });
  return { items, strict: tools.length === 0 };
}

function planned(isPlan: boolean): Record<string, JsonSchema> {
  return isPlan ? { id: { type: "string" }, expect: EXPECTATIONS } : {};
}

const REFERENCE = closedObject({ $ref: { type: "string", description: "c1 or c1.path: an earlier call's result" } });

/** In a plan, an argument may come from an earlier call. */
function withReferences(schema: JsonSchema): JsonSchema {
  if (!isPlainObject(schema.properties)) return schema;
  const properties = Object.entries(schema.properties).map(([name, given]): [string, JsonSchema] => {
    const { description, ...rest } = given as JsonSchema;
    return [name, { anyOf: [rest, REFERENCE], ...(description === undefined ? {} : { description }) }];
  });
  return { ...schema, properties: Object.fromEntries(properties) };
}

const EXPECTATIONS: JsonSchema = nullable({
  type: "array",
  description: "what the result has to be like",
  items: closedObject({
    path: { type: ["string", "null"] },
    is: { type: "string", enum: EXPECTATION_KINDS },
    value: { anyOf: [{ type: "string" }, { type: "number" }, { type: "boolean" }, { type: "null" }] },
  }),
});

function closedObject(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

function nullable(schema: JsonSchema): JsonSchema {
  const { description, ...rest } = schema;
  return { anyOf: [rest, { type: "null" }], ...(description === undefined ? {} : { description }) };
}

interface Derived {
  readonly schema: JsonSchema;
  readonly strict: boolean;
}

// Deriving a JSON schema takes tens of microseconds and never changes for a given zod schema.
const derived = new WeakMap<z.ZodType, Derived>();

function fieldSchema(schema: z.ZodType): Derived {
  let known = derived.get(schema);
  if (!known) {
    const converter = new StrictConverter();
    known = { schema: converter.convert(z.toJSONSchema(schema)), strict: converter.strict };
    derived.set(schema, known);
  }
  return known;
}

/**
 * Moves a field's schema into the decision's: its references count from its own root, so the root
 * and its definitions go to the decision's definitions under the field's name.
 */
function embed(name: string, schema: JsonSchema, definitions: Record<string, JsonSchema>): JsonSchema {
  const text = JSON.stringify(schema);
  if (!text.includes('"$ref":"#')) return schema;
  const moved = JSON.parse(
    text
      .replaceAll('"$ref":"#/$defs/', `"$ref":"#/$defs/${name}.`)
      .replaceAll('"$ref":"#"', `"$ref":"#/$defs/${name}"`),
  ) as Record<string, unknown>;
  const { $defs, ...root } = moved;
  for (const [key, definition] of Object.entries(($defs ?? {}) as Record<string, JsonSchema>)) {
    definitions[`${name}.${key}`] = definition;
  }
  definitions[name] = root;
  return { $ref: `#/$defs/${name}` };
}

// What strict output modes know. Of the rest, what only narrows a text is left out, since our own
// check of the patch enforces it; anything else makes the schema one that they would reject.
const KNOWN = new Set(
  ["type", "items", "enum", "const", "anyOf", "description", "title", "$ref", "$defs", "format", "pattern"].concat([
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
  ]),
);
const NARROWING = new Set([
  "minLength",
  "maxLength",
  "default",
  "uniqueItems",
  "$schema",
  "id",
  "$id",
  "contentEncoding",
]);
const FORMATS = new Set(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]);
const LOOKS_AROUND = /\(\?[=!<]/;

/** Turns a JSON schema into one for strict output modes where that can be done. */
class StrictConverter {
  strict = true;

  convert(given: unknown): JsonSchema {
    const schema = given as Readonly<Record<string, unknown>>;
    if (!["type", "enum", "const", "anyOf", "$ref"].some((key) => key in schema)) this.strict = false;
    const result: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(schema)) this.keyword(key, value, result);
    if (schema.properties) {
      const properties = Object.entries(schema.properties).map(([name, item]): [string, JsonSchema] => {
        const converted = this.convert(item);
        // A constant tells alternatives apart; any other absent property means unchanged, so null does.
        return [name, "const" in converted ? converted : nullable(converted)];
      });
      Object.assign(result, closedObject(Object.fromEntries(properties)));
      if (schema.additionalProperties !== undefined && schema.additionalProperties !== false) this.strict = false;
    } else if (schema.type === "object") this.strict = false;
    return result;
  }

  private keyword(key: string, value: unknown, result: Record<string, unknown>): void {
    const map = (items: object) =>
      Object.fromEntries(Object.entries(items).map(([name, item]) => [name, this.convert(item)]));
    if (NARROWING.has(key) || (key === "format" && !FORMATS.has(String(value)))) return;
    if (key === "pattern" && LOOKS_AROUND.test(String(value))) return;
    if (key === "properties" || key === "required" || key === "additionalProperties") {
      if (key === "additionalProperties" && typeof value === "object") result[key] = this.convert(value);
    } else if (key === "items") result[key] = typeof value === "object" ? this.convert(value) : value;
    else if (key === "anyOf" || key === "oneOf" || key === "allOf" || key === "prefixItems") {
      result[key] = (value as unknown[]).map((item) => this.convert(item));
    } else if (key === "$defs") result[key] = map(value as object);
    else result[key] = value;
    if (!KNOWN.has(key) && !["properties", "required", "additionalProperties"].includes(key)) this.strict = false;
  }
}
