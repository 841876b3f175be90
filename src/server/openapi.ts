import { z } from "zod";
import { WorkflowError, type ErrorCode } from "../errors.ts";
import { ROUTES, type Answer, type Route } from "./routes.ts";
import { problem } from "./shapes.ts";

type Json = Readonly<Record<string, unknown>>;

/** The OpenAPI 3.1 document, made from the schemas that check the requests. Pure. */
export function openApiDocument(version: string): Json {
  const named = new Map<string, Json>();
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of Object.values(ROUTES) as readonly Route[]) {
    paths[route.path] = { ...paths[route.path], [route.method]: operationOf(route, named) };
  }
  refer(problem, named);
  return {
    openapi: "3.1.0",
    info: {
      title: "statecard",
      version,
      description: "Guarded workflows with explicit state: start tasks, answer what they ask, follow them.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    security: [{ token: [] }, {}],
    paths,
    components: {
      schemas: Object.fromEntries([...named].toSorted(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: {
        token: {
          type: "http",
          scheme: "bearer",
          description: "Made with `statecard token create NAME`. Not needed on this machine while nobody has one.",
        },
      },
    },
  };
}

function operationOf(route: Route, named: Map<string, Json>): Json {
  const { id, summary, body, mayBeEmpty, isOpen } = route;
  return {
    operationId: id,
    summary,
    ...(isOpen ? { security: [] } : {}),
    parameters: parametersOf(route),
    ...(body
      ? { requestBody: { required: !mayBeEmpty, content: { "application/json": { schema: refer(body, named) } } } }
      : {}),
    responses: { ...mapped(route.answers, (answer) => answerOf(answer, named)), ...problemsOf(route.problems) },
  };
}

function parametersOf({ path, query, headers = {} }: Route): readonly Json[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const { properties = {}, required = [] } = schemaOf(query) as { properties?: Json; required?: string[] };
  const inQuery = Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
  }));
  const inHeaders = Object.entries(headers).map(([name, { schema, description }]) => ({
    name,
    in: "header",
    required: false,
    description,
    schema: schemaOf(schema),
  }));
  return [...inPath, ...inQuery, ...inHeaders];
}

function answerOf({ description, schema, type }: Answer, named: Map<string, Json>): Json {
  if (schema) return { description, content: { "application/json": { schema: refer(schema, named) } } };
  if (type === undefined) return { description };
  return { description, content: { [type]: { schema: { type: type === "application/json" ? "object" : "string" } } } };
}

/** Refusals by status, each with the codes that it may have. */
function problemsOf(codes: readonly ErrorCode[]): Json {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of codes) {
    const { status } = new WorkflowError(code, "");
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const content = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };
  return Object.fromEntries(
    [...byStatus].map(([status, of]) => [status, { description: `${[...new Set(of)].join(", ")}.`, content }]),
  );
}

/** A schema by its name, which is added to the components; one without a name as it is. */
function refer(schema: z.ZodType, named: Map<string, Json>): Json {
  const name = schema.meta()?.id;
  const { $defs = {}, ...own } = schemaOf(schema) as { $defs?: Record<string, Json> };
  for (const [each, defined] of Object.entries($defs)) named.set(each, defined);
  return name === undefined ? own : { $ref: `#/components/schemas/${name}` };
}

function schemaOf(schema: z.ZodType): Json {
  const { $schema: _dialect, ...own } = z.toJSONSchema(schema, { io: "input" });
  // Schemas that have a name are components of the document.
  return JSON.parse(JSON.stringify(own).replaceAll('"#/$defs/', '"#/components/schemas/')) as Json;
}

function mapped<Value>(values: Readonly<Record<number, Value>>, change: (value: Value) => Json): Json {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value as Value)]));
}
