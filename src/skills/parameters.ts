import { z } from "zod";
import { notJson } from "../internal/json.ts";
import { NAME } from "../workflow/fault.ts";
import type { SkillParameter } from "./skill.ts";

/** Arguments whose names are known at run time only. */
export type SkillArguments = z.ZodType<Record<string, unknown>>;

const value = z.union([z.string(), z.number(), z.boolean()]);
const declaration: z.ZodType<SkillParameter> = z.strictObject({
  type: z.enum(["string", "number", "integer", "boolean", "array"]).optional(),
  description: z.string().optional(),
  enum: z.array(value).min(1).optional(),
  examples: z.array(z.json()).optional(),
  default: z.json().optional(),
  required: z.boolean().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  items: z.lazy(() => declaration).optional(),
});

type Read =
  | { readonly ok: true; readonly parameters: Readonly<Record<string, SkillParameter>> }
  | { readonly ok: false; readonly parameter: string | null; readonly message: string };

/**
 * Checks the parameters that a front matter declares: name → `{ type, description, enum, examples, … }`, or
 * just a type. Examples and defaults have to fit what they are examples of. Pure.
 */
export function readParameters(given: unknown): Read {
  if (given === undefined || given === null) return { ok: true, parameters: {} };
  const entries = z.record(z.string(), z.unknown()).safeParse(given);
  const odd = notJson(given);
  if (!entries.success || odd) {
    return { ok: false, parameter: null, message: odd ?? "parameters must map names to what they are" };
  }
  const parameters: Record<string, SkillParameter> = {};
  for (const [name, declared] of Object.entries(entries.data)) {
    const refused = (message: string): Read => ({
      ok: false,
      parameter: name,
      message: `parameter ${name}: ${message}`,
    });
    if (!NAME.test(name)) return refused("use letters, digits, _ and -, starting with a letter");
    const parsed = declaration.safeParse(typeof declared === "string" ? { type: declared } : declared);
    if (!parsed.success) return refused(tell(parsed.error));
    const misfit = misfitOf(parsed.data);
    if (misfit !== null) return refused(misfit);
    parameters[name] = parsed.data;
  }
  return { ok: true, parameters };
}

function tell(error: z.ZodError): string {
  return error.issues
    .map(({ path, message }) => (path.length > 0 ? `${path.join(".")}: ${message}` : message))
    .join("; ");
}

function misfitOf(parameter: SkillParameter): string | null {
  const { examples = [], default: standard, ...bare } = parameter;
  const schema = z.fromJSONSchema({ ...jsonSchema(bare) });
  for (const item of parameter.enum ?? []) {
    if (!z.fromJSONSchema({ ...jsonSchema({ ...bare, enum: undefined }) }).safeParse(item).success)
      return `its enum has ${JSON.stringify(item)}, which is no ${parameter.type}`;
  }
  const misfit = [...examples, ...(standard === undefined ? [] : [standard])].find(
    (one) => !schema.safeParse(one).success,
  );
  return misfit === undefined ? null : `${JSON.stringify(misfit)} does not fit it`;
}

function jsonSchema(parameter: SkillParameter): Record<string, unknown> {
  const { required: _, items, examples = [], description, ...rest } = parameter;
  // The model reads descriptions whatever else of a schema reaches it.
  const shown = examples.length > 0 ? `for instance ${examples.map((one) => JSON.stringify(one)).join(", ")}` : "";
  const told = [description, shown].filter(Boolean).join("; ");
  const isUntyped = rest.type === undefined && rest.enum === undefined;
  const given = Object.entries(rest).filter(([, value]) => value !== undefined);
  return {
    ...Object.fromEntries(given),
    ...(isUntyped ? { type: "string" } : {}),
    ...(told === "" ? {} : { description: told }),
    ...(rest.type === "array" ? { items: jsonSchema(items ?? {}) } : {}),
  };
}

/** The names of the parameters that have to be given. Pure. */
export function requiredOf(parameters: Readonly<Record<string, SkillParameter>>): readonly string[] {
  return Object.entries(parameters)
    .filter(([, { required, default: standard }]) => required ?? standard === undefined)
    .map(([name]) => name);
}

/** The zod object that a skill's parameters stand for; what they do not name is refused. Pure. */
export function argumentsOf(parameters: Readonly<Record<string, SkillParameter>>): SkillArguments {
  const entries = Object.entries(parameters);
  const schema = {
    type: "object" as const,
    properties: Object.fromEntries(entries.map(([name, parameter]) => [name, jsonSchema(parameter)])),
    required: requiredOf(parameters),
    additionalProperties: false,
  };
  return z.fromJSONSchema(schema as never) as SkillArguments;
}
