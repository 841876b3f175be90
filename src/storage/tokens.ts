import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { first, type Sql } from "./sql.ts";

/** Somebody who has a token. */
export interface TokenOwner {
  readonly name: string;
  /** Whose tasks this person sees over HTTP; empty for those of no tenant. */
  readonly tenant: string;
}

/** Whose token there is; the token itself is known to nobody but its owner. */
export interface TokenRow extends TokenOwner {
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

const TOKEN_BYTES = 32;
// The prefix lets secret scanners, and our own redaction, know one when they see it.
const PREFIX = "sc_";

/**
 * Makes a person's token, in place of an older one, within a transaction. Only its hash is stored: a
 * fast one will do, since nobody can guess 32 random bytes.
 */
export async function createToken(
  sql: Sql,
  { name, tenant }: TokenOwner,
  now: number,
): Promise<{ token: string; replaced: boolean }> {
  const token = PREFIX + randomBytes(TOKEN_BYTES).toString("base64url");
  const replaced = (await storedHash(sql, name)) !== null;
  await sql.run(
    `insert into statecard_tokens (name, hash, created_at, tenant) values (?, ?, ?, ?)
     on conflict (name) do update set hash = excluded.hash, created_at = excluded.created_at, tenant = excluded.tenant`,
    name,
    hashOf(token).toString("hex"),
    now,
    tenant,
  );
  return { token, replaced };
}

/** Whether a token is the one of this person. */
export async function isTokenOf(sql: Sql, name: string, token: string): Promise<boolean> {
  const stored = await storedHash(sql, name);
  const given = hashOf(token);
  // Where there is no such person, it takes as long.
  return timingSafeEqual(given, stored ?? Buffer.alloc(given.length)) && stored !== null;
}

/** Whose token this is. What is looked up is its hash, so how long that takes says nothing about any token. */
export async function ownerOfToken(sql: Sql, token: string): Promise<TokenOwner | null> {
  return first<TokenOwner>(
    sql,
    `select name, tenant from statecard_tokens where hash = ?`,
    hashOf(token).toString("hex"),
  );
}

/** Whether anybody has a token. */
export async function hasTokens(sql: Sql): Promise<boolean> {
  return (await first(sql, `select 1 as found from statecard_tokens limit 1`)) !== null;
}

async function storedHash(sql: Sql, name: string): Promise<Buffer | null> {
  const row = await first<{ hash: string }>(sql, `select hash from statecard_tokens where name = ?`, name);
  const hash = row && Buffer.from(row.hash, "hex");
  // A row that somebody has damaged is no token, rather than an error about lengths.
  return hash?.length === hashOf("").length ? hash : null;
}

/** Who has a token, by name. */
export async function readTokens(sql: Sql): Promise<readonly TokenRow[]> {
  const rows = await sql.all<{ name: string; tenant: string; created_at: number }>(
    `select name, tenant, created_at from statecard_tokens order by name`,
  );
  return rows.map(({ name, tenant, created_at: createdAt }) => ({ name, tenant, createdAt }));
}

/** @returns false where there was none. */
export async function revokeToken(sql: Sql, name: string): Promise<boolean> {
  return (await sql.run(`delete from statecard_tokens where name = ?`, name)) > 0;
}

function hashOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
