import { createHash } from "node:crypto";
import type { Artifact, ArtifactInfo } from "../workflow/artifact.ts";
import { first, type Sql } from "./sql.ts";

/** An artifact as the log names it: enough to notice any change of its text. */
export interface LoggedArtifact extends Pick<Artifact, "id" | "kind" | "bytes"> {
  readonly sha256: string;
}

interface Row extends Omit<Artifact, "text"> {
  readonly content: Uint8Array;
}

const COLUMNS = "id, tool, bytes, at";

/** The fingerprint of an artifact's text, or of the file that holds it. */
export function contentHash(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

/** What the log says about an artifact. */
export function logged({ id, kind, bytes, text }: Omit<Artifact, "at">): LoggedArtifact {
  return { id, kind, bytes, sha256: contentHash(text) };
}

/** Stores an artifact, within the transaction of its call's result. */
export async function putArtifact(sql: Sql, taskId: string, artifact: Artifact): Promise<void> {
  const { id, tool, kind, bytes, at, text } = artifact;
  await sql.run(
    `insert into statecard_artifacts (task_id, id, tool, kind, bytes, at, content) values (?, ?, ?, ?, ?, ?, ?)
     on conflict (task_id, id) do update set tool = excluded.tool, kind = excluded.kind, bytes = excluded.bytes, at = excluded.at, content = excluded.content`,
    taskId,
    id,
    tool,
    kind,
    bytes,
    at,
    Buffer.from(text),
  );
}

/** One artifact of a task. */
export async function readArtifact(sql: Sql, taskId: string, id: string): Promise<Artifact | null> {
  const row = await first<Row>(
    sql,
    `select ${COLUMNS}, kind, content from statecard_artifacts where task_id = ? and id = ?`,
    taskId,
    id,
  );
  return row && toArtifact(row);
}

/** What a task has set aside, oldest first. */
export function readArtifactInfos(sql: Sql, taskId: string): Promise<readonly ArtifactInfo[]> {
  return sql.all<ArtifactInfo>(`select ${COLUMNS} from statecard_artifacts where task_id = ? order by at, id`, taskId);
}

/** All artifacts of a task with their texts, for an export. */
export async function readArtifacts(sql: Sql, taskId: string): Promise<readonly Artifact[]> {
  const rows = await sql.all<Row>(
    `select ${COLUMNS}, kind, content from statecard_artifacts where task_id = ? order by at, id`,
    taskId,
  );
  return rows.map(toArtifact);
}

function toArtifact({ content, ...info }: Row): Artifact {
  return { ...info, text: Buffer.from(content).toString() };
}
