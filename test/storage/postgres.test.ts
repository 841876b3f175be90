import { inspect } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { isWorkflowError, WorkflowError } from "../../src/errors.ts";
import { databaseError } from "../../src/storage/postgres/errors.ts";
import { postgresStore } from "../../src/storage/postgres/postgres.ts";
import { numbered } from "../../src/storage/postgres/statements.ts";
import type { Sql } from "../../src/storage/sql.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";
import { StoredTask } from "../../src/testing/stored-task.ts";
import { describePostgres, postgresUrl } from "../support/postgres.ts";

const PASSWORD = "hunter2-secret";

/** The store's port to its database. */
const portOf = (store: SqlStore) => store["sql"];

/** A transaction that is open until it is let go. */
class Held {
  private letGo = () => {};
  readonly done: Promise<void>;
  readonly begun: Promise<void>;

  constructor(store: SqlStore, work: (sql: Sql) => Promise<unknown>, task?: string) {
    let begin = () => {};
    this.begun = new Promise((resolve) => (begin = resolve));
    const gate = new Promise<void>((resolve) => (this.letGo = resolve));
    this.done = portOf(store).transaction(async (sql) => {
      await work(sql);
      begin();
      await gate;
    }, task);
  }

  end(): Promise<void> {
    this.letGo();
    return this.done;
  }
}

describePostgres("transactions on PostgreSQL", (schema) => {
  const insert = (id: string) => (sql: Sql) =>
    sql.run(`insert into statecard_tokens (name, hash, created_at) values (?, '', 0)`, id);
  const names = async (sql: Sql) =>
    (await sql.all<{ name: string }>(`select name from statecard_tokens order by name`)).map(({ name }) => name);

  test("of one task wait for each other and see what the one before has written; others pass", async () => {
    const [store, other] = [schema.open(), schema.open()];
    const order: string[] = [];
    const first = new Held(store, insert("first"), "t");
    await first.begun;
    const second = portOf(other).transaction(async (sql) => order.push(`second saw ${(await names(sql)).join()}`), "t");
    const everything = portOf(other).transaction(async (sql) => order.push(`all saw ${(await names(sql)).join()}`));
    expect(await names(portOf(other))).toEqual([]);
    order.push("first ends");
    await first.end();
    await Promise.all([second, everything]);
    expect(order[0]).toBe("first ends");
    expect(order.slice(1).toSorted()).toEqual(["all saw first", "second saw first"]);
  });

  test("of another task do not wait", async () => {
    const [store, other] = [schema.open(), schema.open()];
    const held = new Held(store, insert("held"), "t");
    await held.begun;
    await portOf(other).transaction(insert("passed"), "u");
    expect(await names(portOf(other))).toContain("passed");
    await held.end();
  });

  test("are rolled back by an error, and by one of a statement even where it was caught", async () => {
    const store = schema.open();
    const failing = portOf(store).transaction(async (sql) => {
      await insert("lost")(sql);
      throw new Error("no");
    }, "t");
    await expect(failing).rejects.toThrow("no");
    const swallowed = portOf(store).transaction(async (sql) => {
      await insert("lost")(sql);
      await sql.run("insert into nowhere values (1)").catch(() => {});
    }, "t");
    await expect(swallowed).rejects.toThrow("rolled back");
    expect(await names(portOf(store))).not.toContain("lost");
  });

  test("wait for a lock only so long", async () => {
    const [store, hasty] = [schema.open(), schema.open({ lockTimeoutMs: 20 })];
    const held = new Held(store, async () => {}, "t");
    await held.begun;
    const late = portOf(hasty).transaction(async () => {}, "t");
    await expect(late).rejects.toMatchObject({ code: "DATABASE_LOCKED", retryable: true });
    await held.end();
    await portOf(hasty).transaction(async () => {}, "t");
  });
});

describePostgres("a PostgreSQL database", (schema) => {
  test("is set up once, however many processes come first at once", async () => {
    const stores = Array.from({ length: 6 }, () => schema.open({ maxConnections: 2 }));
    await Promise.all(stores.map((store, index) => StoredTask.start(store, `first-${index}`)));
    expect(await stores[0]?.tasks()).toHaveLength(6);
    expect(await schema.query("select value from statecard_meta")).toEqual([{ value: "6" }]);
  });

  test("of a newer format is refused, and left as it is", async () => {
    await schema.open().tasks();
    await schema.query("update statecard_meta set value = '999'");
    onTestFinished(async () => void (await schema.query("update statecard_meta set value = '6'")));
    const refused = schema.open().tasks();
    await expect(refused).rejects.toMatchObject({ code: "DATABASE_TOO_NEW" });
    await expect(refused).rejects.toThrow(/format 999.*update statecard/);
    expect(await schema.query("select value from statecard_meta")).toEqual([{ value: "999" }]);
  });

  test("is opened again after it was closed", async () => {
    const store = schema.open();
    const task = await StoredTask.start(store, "closed");
    await store.close();
    await store.close();
    expect((await store.head("closed"))?.checkpointId).toBe(task.head);
  });

  test("is closed when what has begun has ended", async () => {
    const store = schema.open({ maxConnections: 1 });
    await store.tasks();
    // One of them has the connection, the others are in line for it.
    const wakes = Promise.all(["a", "b", "c"].map((taskId) => store.addWake(taskId)));
    await store.close();
    expect(await schema.open().wakes()).toHaveLength(3);
    await wakes;
  });

  test("that ends its connections is used again through new ones", async () => {
    const name = `${schema.name}_ended`;
    const url = new URL(postgresUrl());
    url.searchParams.set("application_name", name);
    const store = postgresStore(url.href, { schema: schema.name });
    onTestFinished(() => store.close());
    await store.tasks();
    await schema.query(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = '${name}'`);
    for (let attempt = 0; ; attempt++) {
      try {
        await store.tasks();
        break;
      } catch (error) {
        expect(isWorkflowError(error, "DATABASE_UNAVAILABLE") && error.retryable).toBe(true);
        expect(attempt).toBeLessThan(5);
      }
    }
  });

  test("that does not exist says so", async () => {
    const url = new URL(postgresUrl());
    url.pathname = "/no_such_database";
    const missing = postgresStore(url.href).tasks();
    await expect(missing).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
    await expect(missing).rejects.toThrow(/no_such_database.*does not exist/);
  });
});

describe("a PostgreSQL server that cannot be used", () => {
  const failure = async (url: string): Promise<WorkflowError> => {
    const error: unknown = await postgresStore(url)
      .tasks()
      .catch((caught: unknown) => caught);
    if (!isWorkflowError(error)) throw new Error(`not a WorkflowError: ${inspect(error)}`);
    return error;
  };

  test("is named by user, host and database, without the password", async () => {
    const error = await failure(`postgres://ann:${PASSWORD}@127.0.0.1:1/tasks`);
    expect(error).toMatchObject({ code: "DATABASE_UNAVAILABLE", retryable: true });
    expect(error.message).toMatch(/"tasks" on 127\.0\.0\.1:1 \(user ann\) cannot be reached \(ECONNREFUSED\)/);
    expect(inspect(error, { depth: 9 })).not.toContain(PASSWORD);
  });

  test.each([
    `postgres://ann:${PASSWORD}@host:port/tasks`,
    `postgres://ann:${PASSWORD}@[::`,
    `postgres://%:${PASSWORD}@h/d`,
  ])("a connection string that cannot be read is refused without being repeated: %#", async (url) => {
    const error = await failure(url);
    expect(error).toMatchObject({ code: "DATABASE_UNAVAILABLE" });
    expect(inspect(error, { depth: 9 })).not.toContain(PASSWORD);
  });

  test.each<[string, string, RegExp]>([
    ["28P01", "DATABASE_UNAVAILABLE", /password/],
    ["53300", "DATABASE_UNAVAILABLE", /cannot be reached/],
    ["53100", "DATABASE_UNAVAILABLE", /full/],
    ["57P03", "DATABASE_UNAVAILABLE", /cannot be reached/],
    ["42501", "DATABASE_READ_ONLY", /grant/],
    ["25006", "DATABASE_READ_ONLY", /primary/],
    ["55P03", "DATABASE_LOCKED", /try again/],
  ])("the server's code %s becomes %s", (code, expected, says) => {
    const error = databaseError("the database", Object.assign(new Error("said"), { code }));
    expect(error).toMatchObject({ code: expected });
    expect((error as Error).message).toMatch(says);
  });

  test("a password that is missing is said to be", () => {
    const error = databaseError(
      "the database",
      new Error("SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string"),
    );
    expect(error).toMatchObject({ code: "DATABASE_UNAVAILABLE", retryable: false });
    expect((error as Error).message).toMatch(/refused the login/);
  });

  test("an error of another kind is passed on", () => {
    const bug = Object.assign(new Error("syntax error"), { code: "42601" });
    expect(databaseError("the database", bug)).toBe(bug);
    const own = new WorkflowError("STALE_WRITE", "no");
    expect(databaseError("the database", own)).toBe(own);
  });
});

test("placeholders are numbered in their order, once a statement", () => {
  const statement = "select ? from a where b = ? and c in (?, ?)";
  expect(numbered(statement).text).toBe("select $1 from a where b = $2 and c in ($3, $4)");
  expect(numbered(statement)).toBe(numbered(statement));
});
