import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { logLines } from "../../src/storage/export/format.ts";
import { artifactFile } from "../../src/storage/export/artifact-files.ts";
import { readExport, writeExport } from "../../src/storage/export/folder.ts";
import { verifyExport } from "../../src/storage/export/verify.ts";
import type { SqlStore } from "../../src/storage/sql-store.ts";
import { sqliteStore } from "../../src/storage/sqlite/sqlite.ts";
import { storedWorkflow, StoredTask } from "../../src/testing/stored-task.ts";
import { setAside } from "../../src/tools/artifacts.ts";
import { TO_FORMAT_5 } from "../support/formats.ts";
import { onBothDialects } from "../support/stores.ts";

const LOG = Array.from({ length: 2000 }, (_, index) => `${index} Grüße 👋 \u0000\r`).join("\n");
const ROWS = { rows: Array.from({ length: 400 }, (_, index) => ({ index, text: "a row" })) };

/** A task with a large text and a large JSON value, and a call that brought something small. */
async function taskWithArtifacts(store: SqlStore, taskId = "t"): Promise<readonly string[]> {
  const task = await StoredTask.start(store, taskId);
  const ids: string[] = [];
  for (const [position, value] of [LOG, ROWS, "small"].entries()) {
    const key = `1.${position}`;
    const intent = { key, digest: `d${position}`, decision: 1, tool: "read", timeoutMs: 60_000, repeat: false };
    await store.intend(task.lease, task.head, intent);
    const { result, artifact } = setAside(key, { id: key, tool: "read", status: "ok", value });
    await store.recordResult(task.lease, intent, result, artifact);
    if (artifact) ids.push(artifact.id);
  }
  await store.release(task.lease);
  await store.append(taskId, 0, "started", {
    input: {},
    workflow: storedWorkflow.name,
    version: storedWorkflow.version,
    step: storedWorkflow.initial,
  });
  return ids;
}

function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "statecard-artifacts-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "export");
}

async function exportOf(store: SqlStore, taskId = "t", key?: string): Promise<string> {
  const at = freshFolder();
  writeExport(at, await store.exportTask(taskId), key);
  return at;
}

const verify = (at: string, key?: string) => verifyExport(readExport(at), key);
const invalid = (text: RegExp) =>
  expect.objectContaining({ code: "INVALID_EXPORT", message: expect.stringMatching(text) });

/** Writes an export's log anew, its chain whole. */
function forge(at: string, change: (data: any) => object): void {
  const path = join(at, "events.log");
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  const events = lines.map((line) => JSON.parse(line));
  const forged = events.map((event) => (event.data.artifact ? { ...event, data: change(event.data) } : event));
  writeFileSync(path, `${logLines(forged, undefined).join("\n")}\n`);
  rmSync(join(at, "state.json"));
}

onBothDialects((dialect) => {
  test("an export holds each artifact as a file, and an import brings them back unchanged", async () => {
    const store = dialect.open();
    const ids = await taskWithArtifacts(store);
    const before = await Promise.all(ids.map((id) => store.artifact("t", id)));
    expect(before.map((one) => one?.kind)).toEqual(["text", "json"]);
    expect(before[0]?.text).toBe(LOG);
    const at = await exportOf(store);
    expect(readdirSync(join(at, "artifacts")).toSorted()).toEqual([`${ids[0]}.txt`, `${ids[1]}.json`].toSorted());
    expect(readFileSync(join(at, "artifacts", `${ids[0]}.txt`), "utf8")).toBe(LOG);
    expect(JSON.parse(readFileSync(join(at, "artifacts", `${ids[1]}.json`), "utf8"))).toEqual(ROWS);
    expect(verify(at)).toMatchObject({ from: "state.json", difference: null });
    await store.importTask(storedWorkflow, "copy", verify(at));
    rmSync(join(at, "state.json"));
    await store.importTask(storedWorkflow, "from-log", verify(at));
    for (const taskId of ["copy", "from-log"]) {
      expect(await Promise.all(ids.map((id) => dialect.open().artifact(taskId, id)))).toEqual(before);
      expect(await store.artifacts(taskId)).toEqual(await store.artifacts("t"));
      // It can be exported again.
      expect(verify(await exportOf(store, taskId)).artifacts).toHaveLength(2);
    }
    expect(await store.artifacts("t")).toHaveLength(2);
    await store.deleteTask("t");
    const left = await dialect.query("select count(*) as number from statecard_artifacts where task_id = 't'");
    expect(Number(left[0]?.number)).toBe(0);
  });
});

onBothDialects((dialect) => {
  test("a database of format 2 gets the table when it is opened", async () => {
    await StoredTask.start(dialect.open(), "old");
    for (const statement of TO_FORMAT_5) await dialect.query(statement);
    await dialect.query("drop table statecard_artifacts");
    await dialect.query("alter table statecard_tokens drop column tenant");
    await dialect.query("update statecard_meta set value = '2'");
    const store = dialect.open();
    expect(await store.artifacts("old")).toEqual([]);
    expect(await dialect.query("select value from statecard_meta")).toEqual([{ value: "6" }]);
    await taskWithArtifacts(store, "new");
    expect(await store.artifacts("new")).toHaveLength(2);
  });
});

test("an artifact that was changed or taken away is found out, with and without state.json, signed or not", async () => {
  const store = sqliteStore(":memory:");
  const [id] = await taskWithArtifacts(store);
  for (const key of [undefined, "a key"]) {
    for (const withState of [true, false]) {
      const at = await exportOf(store, "t", key);
      if (!withState) rmSync(join(at, "state.json"));
      expect(verify(at, key).artifacts).toHaveLength(2);
      const file = join(at, "artifacts", `${id}.txt`);
      const whole = readFileSync(file);
      writeFileSync(file, Buffer.concat([whole.subarray(0, -1), Buffer.from("!")]));
      expect(() => verify(at, key)).toThrow(invalid(/^artifacts\/1\.0-.*\.txt was changed: .* entry 2 of events\.log/));
      rmSync(file);
      expect(() => verify(at, key)).toThrow(invalid(/^artifacts\/1\.0-.*\.txt is missing: entry 2/));
      writeFileSync(file, whole);
      expect(verify(at, key).artifacts).toHaveLength(2);
    }
  }
});

test("a log from elsewhere can name no file outside of the export", async () => {
  const store = sqliteStore(":memory:");
  await taskWithArtifacts(store);
  const at = await exportOf(store);
  writeFileSync(join(at, "..", "secret.txt"), "secret");
  forge(at, (data) => ({ ...data, artifact: { ...data.artifact, id: "../../secret" } }));
  expect(() => verify(at)).toThrow(invalid(/artifacts\/\.\.%2F\.\.%2Fsecret\.txt is missing/));
  expect(artifactFile({ id: "..", kind: "text" })).toBe("...txt");
  expect(artifactFile({ id: "a/b\\c\u0000", kind: "json" })).toBe("a%2Fb%5Cc%00.json");
});

test("an entry that names an artifact and cannot is refused", async () => {
  const store = sqliteStore(":memory:");
  await taskWithArtifacts(store);
  for (const change of [{ kind: "exe" }, { sha256: "no" }, { id: "" }, { id: "\ud83d" }, { bytes: -1 }]) {
    const at = await exportOf(store);
    forge(at, (data) => ({ ...data, artifact: { ...data.artifact, ...change } }));
    expect(() => verify(at)).toThrow(invalid(/entry 2 of events\.log names an artifact that cannot be one/));
  }
});

test("an earlier export is replaced with its artifacts; a file of somebody else's is not", async () => {
  const store = sqliteStore(":memory:");
  await taskWithArtifacts(store);
  const at = await exportOf(store);
  const exported = await store.exportTask("t");
  writeExport(at, exported, undefined);
  expect(readdirSync(join(at, "artifacts"))).toHaveLength(2);
  writeFileSync(join(at, "artifacts", "notes.txt"), "mine");
  expect(() => writeExport(at, exported, undefined)).toThrow(
    expect.objectContaining({ code: "USAGE", message: expect.stringContaining("artifacts/notes.txt") }),
  );
  expect(readFileSync(join(at, "artifacts", "notes.txt"), "utf8")).toBe("mine");
  rmSync(join(at, "artifacts"), { recursive: true });
  writeFileSync(join(at, "artifacts"), "mine");
  expect(() => writeExport(at, exported, undefined)).toThrow(expect.objectContaining({ code: "USAGE" }));
});
