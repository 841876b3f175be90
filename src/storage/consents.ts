import type { ConsentFilter, ConsentRow, TenantConsentRow } from "../people/consent.ts";
import { Conditions, type Sql } from "./sql.ts";

interface StoredConsent {
  readonly tenant: string;
  readonly workflow: string;
  readonly destination: string;
  readonly kind: string;
  readonly allowed: number;
  readonly decided_by: string | null;
  readonly at: number | string;
}

/** What has been decided, by tenant, workflow, destination and kind; of one tenant and workflow, or of all. */
export async function readConsents(
  sql: Sql,
  filter: Partial<ConsentFilter> = {},
): Promise<readonly TenantConsentRow[]> {
  const { where, parameters } = conditionsOf(filter);
  const rows = await sql.all<StoredConsent>(
    `select tenant, workflow, destination, kind, allowed, decided_by, at from statecard_consents
     ${where} order by tenant, workflow, destination, kind`,
    ...parameters,
  );
  return rows.map(({ allowed, decided_by: by, at, ...row }) => ({
    ...row,
    isAllowed: allowed === 1,
    by,
    at: Number(at),
  }));
}

/** What has been decided for a tenant's tasks of one workflow. */
export async function readConsentsOf(sql: Sql, tenant: string, workflow: string): Promise<readonly ConsentRow[]> {
  const rows = await readConsents(sql, { tenant, workflow });
  return rows.map(({ tenant: _tenant, ...row }) => row);
}

/** Keeps decisions of a tenant, within a transaction; what is kept last holds. */
export async function keepConsents(sql: Sql, tenant: string, rows: readonly ConsentRow[]): Promise<void> {
  for (const { workflow, destination, kind, isAllowed, by, at } of rows) {
    await sql.run(
      `insert into statecard_consents (tenant, workflow, destination, kind, allowed, decided_by, at) values (?, ?, ?, ?, ?, ?, ?)
       on conflict (tenant, workflow, destination, kind) do update
       set allowed = excluded.allowed, decided_by = excluded.decided_by, at = excluded.at`,
      tenant,
      workflow,
      destination,
      kind,
      isAllowed ? 1 : 0,
      by,
      at,
    );
  }
}

/** @returns how many there were. */
export function withdrawConsents(sql: Sql, filter: ConsentFilter): Promise<number> {
  const { where, parameters } = conditionsOf(filter);
  return sql.run(`delete from statecard_consents ${where}`, ...parameters);
}

function conditionsOf({ tenant, workflow, destination, kind }: Partial<ConsentFilter>): Conditions {
  const conditions = new Conditions();
  for (const [column, value] of Object.entries({ tenant, workflow, destination, kind }))
    if (value !== undefined) conditions.add(`${column} = ?`, value);
  return conditions;
}
