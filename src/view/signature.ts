import { z } from "zod";
import type { AnyTool } from "../workflow/tool.ts";
import { escapeTags } from "./text.ts";

type Schema = Readonly<Record<string, unknown>>;

const LINE_ENDS = /\s*[\n\r\v\f\u0085\u2028\u2029]\s*/g;

// Deriving JSON schemas is slow, and a tool never changes once its workflow is checked.
const known = new WeakMap<AnyTool, string>();

/**
 * A tool in one line, at about a third of the tokens of its JSON schema. Its arguments are checked by
 * code before it runs, so the model needs to know them, not to be held to them. Pure.
 *
 * @example signature("refund", tool) // refund(orderId, amount?: number) – Pays money back.
 */
export function signature(name: string, tool: AnyTool): string {
  let rest = known.get(tool);
  if (rest === undefined) {
    const schema = z.toJSONSchema(tool.parameters, { unrepresentable: "any", io: "input" }) as Schema;
    const description = tool.description.trim();
    // Another server may have written it (MCP): it stays one line, and none of ours.
    rest = escapeTags(`(${members(schema)})${description ? ` – ${description}` : ""}`.replaceAll(LINE_ENDS, " "));
    known.set(tool, rest);
  }
  return name + rest;
}

/** A JSON schema as a type, as TypeScript would write it; what has no such form stays JSON. Pure. */
export function typeText(given: unknown): string {
  const schema = given as Schema;
  if (Array.isArray(schema.enum)) return schema.enum.map((item) => JSON.stringify(item)).join("|");
  if ("const" in schema) return JSON.stringify(schema.const);
  const union = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(union)) return union.map(typeText).join("|");
  if (Array.isArray(schema.type))
    return schema.type.map((type) => typeText({ ...schema, type: type as unknown })).join("|");
  switch (schema.type) {
    case "string":
      return typeof schema.format === "string" ? `string (${schema.format})` : "string";
    case "number":
    case "integer":
    case "boolean":
    case "null":
      return schema.type;
    case "array":
      return schema.items ? listText(schema.items as Schema) : "list";
    case "object":
      return objectText(schema);
    default:
      return Object.keys(schema).some((key) => key.startsWith("$") || key === "allOf" || key === "not")
        ? JSON.stringify(schema)
        : "any";
  }
}

function listText(items: Schema): string {
  const item = typeText(items);
  if (items.type === "object") return `${item}[]`;
  return item.includes("|") || item.includes(" ") ? `(${item})[]` : `${item}[]`;
}

function objectText(schema: Schema): string {
  const { additionalProperties: others } = schema;
  if (schema.properties) return `{${members(schema)}}`;
  return typeof others === "object" && others !== null ? `{[key]: ${typeText(others)}}` : "object";
}

function members({ properties, required }: Schema): string {
  const needed = new Set((required ?? []) as readonly string[]);
  return Object.entries((properties ?? {}) as Readonly<Record<string, Schema>>)
    .map(([name, schema]) => {
      const type = typeText(schema);
      // Most are, so the prompt says once that what has no type is a text.
      const told = type === "string" ? "" : `: ${type}`;
      return `${name}${needed.has(name) && !("default" in schema) ? "" : "?"}${told}`;
    })
    .join(", ");
}
