import { expect, test } from "vitest";
import { readOpenRequests } from "../../src/storage/open-requests.ts";
import type { Sql, SqlValue } from "../../src/storage/sql.ts";
import { readTasks, readUntouched } from "../../src/storage/task-list.ts";
import { manyTasks } from "../support/many-tasks.ts";
import { onBothDialects } from "../support/stores.ts";

/** The statement that a list sends, with its values in place. */
async function statementOf(list: (sql: Sql) => Promise<unknown>): Promise<string> {
  let sent = "";
  const literal = (value: SqlValue) => (typeof value === "string" ? `'${value}'` : String(value));
  const sql: Sql = {
    async all(statement, ...values) {
      const left = [...values];
      sent = statement.replaceAll("?", () => literal(left.shift() ?? null));
      return [];
    },
    run: () => Promise.reject(new Error("a list writes nothing")),
  };
  await list(sql);
  return sent;
}

const task = { taskId: "@t3/task-3999", updatedAt: 399_900 };
const open = { taskId: "@t3/task-3999", id: "q1.0", expiresAt: 4999 };
// The lists are empty here, and what an empty list is not asked for.
const releases = undefined as never;

const LISTS: readonly (readonly [name: string, index: string, list: (sql: Sql) => Promise<unknown>])[] = [
  ["tasks", "statecard_heads_newest", (sql) => readTasks(sql, releases, { limit: 20 })],
  ["a later page of tasks", "statecard_heads_newest", (sql) => readTasks(sql, releases, { after: task, limit: 20 })],
  ["a tenant's tasks", "statecard_heads_tenant", (sql) => readTasks(sql, releases, { tenant: "t3", limit: 20 })],
  [
    "a later page of a tenant's tasks",
    "statecard_heads_tenant",
    (sql) => readTasks(sql, releases, { tenant: "t3", after: task, limit: 20 }),
  ],
  ["a workflow's tasks", "statecard_heads_workflow", (sql) => readTasks(sql, releases, { workflow: "w2", limit: 20 })],
  [
    "a tenant's tasks of a workflow",
    "statecard_heads_tenant",
    (sql) => readTasks(sql, releases, { tenant: "t3", workflow: "w2", limit: 20 }),
  ],
  [
    "untouched tasks",
    "statecard_heads_workflow",
    (sql) => readUntouched(sql, { workflow: "w2", since: 400_000, after: { ...task, updatedAt: 5000 }, limit: 200 }),
  ],
  [
    "approvals",
    "statecard_requests_approvals",
    (sql) => readOpenRequests(sql, { approvals: true, after: open, limit: 20 }),
  ],
  [
    "a tenant's approvals",
    "statecard_requests_tenant",
    (sql) => readOpenRequests(sql, { tenant: "t3", approvals: true, after: open, limit: 20 }),
  ],
  [
    "due requests",
    "statecard_requests_due",
    (sql) => readOpenRequests(sql, { workflow: "w2", dueBy: 5000, after: { ...open, expiresAt: 1050 }, limit: 200 }),
  ],
];

onBothDialects((dialect) => {
  test("every list is read by an index, in its order, however much there is", async () => {
    await dialect.open().tasks({ limit: 1 });
    for (const statement of manyTasks(5000)) await dialect.query(statement);
    const isSqlite = dialect.place.length === 1;
    // PostgreSQL plans by what it knows of the tables, SQLite by their indexes alone.
    if (!isSqlite) await dialect.query("analyze statecard_heads, statecard_requests");
    const plans: Record<string, string> = {};
    for (const [name, , list] of LISTS) {
      const statement = await statementOf(list);
      const rows = await dialect.query(`${isSqlite ? "explain query plan" : "explain"} ${statement}`);
      plans[name] = rows.map((row) => String(isSqlite ? row.detail : row["QUERY PLAN"])).join("\n");
    }
    for (const [name, index] of LISTS) {
      expect(plans[name], name).toContain(index);
      expect(plans[name], name).not.toMatch(
        /Seq Scan|(?<!Incremental )Sort\b(?! Key)|TEMP B-TREE FOR ORDER|SCAN (?!\w+ USING INDEX)/,
      );
    }
  });
});
