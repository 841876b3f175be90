import { Validator } from "@seriousme/openapi-schema-validator";
import fc from "fast-check";
import { OpenAPIClientAxios, type Document } from "openapi-client-axios";
import { compile, sqliteStore } from "statecard";
import { listen } from "statecard/server";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { ticketRules } from "../../graphs/ticket/rules.ts";
import { ticket } from "../../graphs/ticket/workflow.ts";
import { openApiDocument } from "../../src/server/openapi.ts";
import { ROUTES, type Route } from "../../src/server/routes.ts";
import { problem, task } from "../../src/server/shapes.ts";
import { expectProblem, TestApi } from "../support/http-api.ts";
import { onBothDialects } from "../support/stores.ts";

const document = openApiDocument("1.2.3") as unknown as Document;
const schemas = (document.components?.schemas ?? {}) as Record<string, Record<string, any>>;

describe("the OpenAPI document", () => {
  test("is valid, and is what the server gives", async () => {
    const result = await new Validator().validate(structuredClone(document) as never);
    expect(result).toMatchObject({ valid: true });
    const http = new TestApi();
    const served = await http.get("/openapi.json");
    expect(served.json).toEqual({ ...document, info: { ...document.info, version: served.json.info.version } });
  });

  test("has every route, with every shape by its name", () => {
    const operations = Object.values(document.paths ?? {}).flatMap((path) => Object.values(path ?? {}));
    expect(new Set(operations.map(({ operationId }: any) => operationId))).toEqual(new Set(Object.keys(ROUTES)));
    expect(operations).toHaveLength(Object.keys(ROUTES).length);
    expect(Object.keys(schemas)).toEqual([
      "Approval",
      "ApprovalList",
      "Cancellation",
      "Decision",
      "Health",
      "NewTask",
      "Problem",
      "Reply",
      "Task",
      "TaskList",
      "TaskRow",
    ]);
    expect(JSON.stringify(document)).not.toContain("$defs");
  });

  test("has no reference that leads nowhere or round in a circle", () => {
    const referred = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(
      ([, name]) => name ?? "",
    );
    for (const name of new Set(referred)) expect(schemas[name]?.type, name).toBe("object");
  });

  test("is enough for a client that is made from it: create, answer, finished", async () => {
    const store = sqliteStore(":memory:");
    const server = await listen({
      graphs: { ticket: compile(ticket, { model: ticketRules(), store }) },
      store,
      port: 0,
      log: () => {},
    });
    onTestFinished(() => server.stop(0));
    const { data } = await (await import("axios")).default.get<Document>(`${server.url}/openapi.json`);
    const made = new OpenAPIClientAxios({ definition: data, axiosConfigDefaults: { baseURL: server.url } });
    const client = (await made.init()) as any;
    const created = await client.createTask({ wait: 10 }, { graph: "ticket", message: "network unstable" });
    expect(created).toMatchObject({ status: 200, data: { status: "waiting_user" } });
    const { taskId: id } = created.data;
    const [{ id: requestId }] = created.data.waiting;
    await client.resumeTask({ id, wait: 10 }, { answer: "P1", requestId });
    const done = await client.resumeTask({ id, wait: 10 }, { answer: "yes" });
    expect(done.data).toMatchObject({ taskId: id, status: "completed" });
    expect(task.safeParse(done.data).success).toBe(true);
    const listed = await client.listTasks({ status: "completed" });
    expect(listed.data.tasks).toMatchObject([{ taskId: id }]);
    await expect(client.resumeTask(id, { answer: "P2" })).rejects.toMatchObject({
      response: { status: 409, data: { code: "TASK_FINISHED" } },
    });
  });
});

/** Values that fit a schema, and hostile ones in their places now and then. */
function valuesOf(schema: Record<string, any>): fc.Arbitrary<unknown> {
  const hostile = fc.oneof(
    fc.constantFrom(
      "",
      "\u0000",
      "\ud800",
      "__proto__",
      "@acme/x",
      "a/b",
      "../..",
      "'; drop table x; --",
      "x".repeat(5000),
    ),
    fc.constantFrom(null, -1, 0, 1e308, true, [], {}, { __proto__: 1 }, { lc: 1 }),
    fc.anything({ maxDepth: 2, withNullPrototype: false }),
  );
  return fc.oneof({ weight: 6, arbitrary: fitting(schema) }, { weight: 1, arbitrary: hostile });
}

function fitting(schema: Record<string, any>): fc.Arbitrary<unknown> {
  if (schema.$ref) return fitting(schemas[schema.$ref.split("/").at(-1)] ?? {});
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map(valuesOf));
  switch (schema.type) {
    case "integer":
    case "number":
      return fc.integer({ min: Math.max(schema.minimum ?? 0, 0), max: Math.min(schema.maximum ?? 1000, 1000) });
    case "boolean":
      return fc.boolean();
    case "object": {
      const keys = Object.entries(schema.properties ?? {}).map(
        ([key, value]) => [key, valuesOf(value as any)] as const,
      );
      if (keys.length === 0)
        return fc.dictionary(fc.constantFrom("order", "amount", "goal", "x"), fc.jsonValue(), { maxKeys: 3 });
      return fc.record(Object.fromEntries(keys), { requiredKeys: schema.required ?? [] });
    }
    default:
      return fc.oneof(
        fc.constantFrom("ticket", "refund", "errand", "t-1", "r-1", "q2.0", "a4.0", "P1", "yes", "network unstable"),
        fc.string({ maxLength: 20 }),
      );
  }
}

/** An address has no half characters. */
const wellFormed = (text: string) => text.replaceAll(/[\ud800-\udfff]/g, "?");

const RUNS = 100;

onBothDialects((dialect) => {
  test.each(Object.values(ROUTES) as Route[])(
    "$method $path never fails and never tells more than it should",
    async (route) => {
      const http = new TestApi({ store: dialect.open(), pollMs: 5, heartbeatMs: 1 });
      await http.post("/tasks?wait=10", { graph: "ticket", message: "network unstable", taskId: "t-1" });
      await http.post("/tasks?wait=10", {
        graph: "refund",
        message: "refund 490 for order 77, arrived broken",
        taskId: "r-1",
      });
      const approvals = (await http.get("/approvals")).json.approvals.map(({ id }: { id: string }) => id);
      const query = z.toJSONSchema(route.query, { io: "input" }) as Record<string, any>;
      const statuses = new Set<number>(
        [...Object.keys(route.answers), ...route.problems.map((code) => expectedStatus(code))].map(Number),
      );
      const asked = fc.record({
        id: fc.oneof(
          fc.constantFrom("t-1", "r-1", ...approvals),
          fc.string({ maxLength: 10 }).filter((id) => !isDotSegment(id)),
        ),
        query: valuesOf(query),
        body: route.body ? valuesOf(z.toJSONSchema(route.body, { io: "input" }) as any) : fc.constant(undefined),
        key: fc.option(fc.constantFrom("k", "l"), { nil: undefined }),
      });
      await fc.assert(
        fc.asyncProperty(asked, async ({ id, query: given, body, key }) => {
          const path = route.path.replace("{id}", encodeURIComponent(wellFormed(id)));
          const words = Object.entries(typeof given === "object" && given !== null ? given : {}).map(
            ([name, value]) =>
              [
                wellFormed(name),
                name === "wait" ? "0" : wellFormed(typeof value === "string" ? value : (JSON.stringify(value) ?? "")),
              ] as [string, string],
          );
          const text = body === undefined ? undefined : (JSON.stringify(body) ?? "{");
          const headers: Record<string, string> = key === undefined ? {} : { "idempotency-key": key };
          if (text !== undefined) headers["content-type"] = "application/json";
          const response = await http.send(
            route.method.toUpperCase(),
            `${path}?${new URLSearchParams(words).toString()}`,
            text,
            headers,
          );
          const isStream = response.headers.get("content-type") === "text/event-stream";
          const said = isStream ? "" : await response.text();
          if (isStream) await response.body?.cancel();
          expect([...statuses, 404], `${path} ${text} ${said}`).toContain(response.status);
          expect(said).not.toMatch(/\n\s+at |node_modules|\.ts:\d|\.js:\d/);
          if (response.status >= 400 && said !== "")
            expect(problem.safeParse(JSON.parse(said)).success, said).toBe(true);
        }),
        { numRuns: RUNS },
      );
      expect(http.logged).toEqual([]);
    },
  );
});

function expectedStatus(code: Route["problems"][number]): number {
  return { ...STATUS }[code] ?? 0;
}

const STATUS = Object.fromEntries(
  Object.values(document.paths ?? {}).flatMap((path) =>
    Object.values(path ?? {}).flatMap(({ responses }: any) =>
      Object.entries(responses).flatMap(([status, { description }]: [string, any]) =>
        [...description.matchAll(/[A-Z_]{4,}/g)].map(([code]) => [code, Number(status)]),
      ),
    ),
  ),
);

test("a problem's own schema takes what a problem is", async () => {
  const http = new TestApi();
  const refused = await http.post("/tasks", {});
  expectProblem(refused, 422, "INVALID_INPUT");
  expect(problem.safeParse(refused.json).success).toBe(true);
});

/** Every client takes these out of a path before it asks; no task can be called so over HTTP. */
function isDotSegment(id: string): boolean {
  return id === "." || id === "..";
}
