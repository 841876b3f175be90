import { createHash } from "node:crypto";

/** A statement as `pg` takes it: numbered placeholders, and a name under which each connection prepares it once. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

const statements = new Map<string, Statement>();

/** Translates a statement with `?` placeholders, once. Ours hold no `?` inside a text. */
export function numbered(statement: string): Statement {
  let known = statements.get(statement);
  if (!known) {
    let count = 0;
    const text = statement.replaceAll("?", () => `$${++count}`);
    known = { name: `statecard_${createHash("sha256").update(text).digest("base64url").slice(0, 22)}`, text };
    statements.set(statement, known);
  }
  return known;
}

/** SQLite's words for types in PostgreSQL's; text sorts by bytes, as it does in SQLite. */
export function tableForPostgres(statement: string): string {
  return statement
    .replace(/\) without rowid$/, ")")
    .replaceAll(/\bblob\b/g, "bytea")
    .replaceAll(/\btext\b/g, `text collate "C"`);
}

/** The number that stands for a name in PostgreSQL's advisory locks. */
export function lockNumber(name: string): bigint {
  return createHash("sha256").update(`statecard ${name}`).digest().readBigInt64BE();
}
