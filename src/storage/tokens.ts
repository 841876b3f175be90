import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "../internal/clock.ts";
import { first, type Database, type Sql } from "./sql.ts";

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

/** Who may come in over HTTP, or answer in a name of his own. */
export class Tokens {
  private readonly sql: Database;
  private readonly clock: Clock;

  constructor(sql: Database, clock: Clock) {
    this.sql = sql;
    this.clock = clock;
  }

  /**
   * Makes a person's token, in place of an older one; it is told this once and never stored. Only its hash is: a fast
   * one will do, since nobody can guess 32 random bytes.
   */
  async create(name: string, tenant = ""): Promise<{ readonly token: string; readonly replaced: boolean }> {
    const token = PREFIX + randomBytes(TOKEN_BYTES).toString("base64url");
    const replaced = await this.sql.transaction(async (sql) => {
      const before = await storedHash(sql, name);
      await sql.run(
        `insert into statecard_tokens (name, hash, created_at, tenant) values (?, ?, ?, ?)
         on conflict (name) do update set hash = excluded.hash, created_at = excluded.created_at, tenant = excluded.tenant`,
        name,
        hashOf(token).toString("hex"),
        this.clock.now(),
        tenant,
      );
      return before !== null;
    });
    return { token, replaced };
  }

  /** Whether a token is the one of this person. */
  async isOf(name: string, token: string): Promise<boolean> {
    const stored = await storedHash(this.sql, name);
    const given = hashOf(token);
    // Where there is no such person, it takes as long.
    return timingSafeEqual(given, stored ?? Buffer.alloc(given.length)) && stored !== null;
  }

  /**
   * Whose token this is; null where nobody has it. What is looked up is its hash, so how long that takes says nothing
   * about any token.
   */
  ownerOf(token: string): Promise<TokenOwner | null> {
    return first(this.sql, `select name, tenant from statecard_tokens where hash = ?`, hashOf(token).toString("hex"));
  }

  /** Whether anybody has a token. */
  async hasAny(): Promise<boolean> {
    return (await first(this.sql, `select 1 as found from statecard_tokens limit 1`)) !== null;
  }

  /** Who has a token, by name. */
  async list(): Promise<readonly TokenRow[]> {
    const rows = await this.sql.all<{ name: string; tenant: string; created_at: number }>(
      `select name, tenant, created_at from statecard_tokens order by name`,
    );
    return rows.map(({ name, tenant, created_at: createdAt }) => ({ name, tenant, createdAt }));
  }

  /** @returns false where there was none. */
  async revoke(name: string): Promise<boolean> {
    return (await this.sql.run(`delete from statecard_tokens where name = ?`, name)) > 0;
  }
}

async function storedHash(sql: Sql, name: string): Promise<Buffer | null> {
  const row = await first<{ hash: string }>(sql, `select hash from statecard_tokens where name = ?`, name);
  const hash = row && Buffer.from(row.hash, "hex");
  // A row that somebody has damaged is no token, rather than an error about lengths.
  return hash?.length === hashOf("").length ? hash : null;
}

function hashOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
