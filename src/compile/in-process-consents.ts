import type { ConsentFilter, ConsentRow, ConsentStore, TenantConsentRow } from "../people/consent.ts";
import { tenantOf } from "./task-id.ts";

/** Decisions about data, kept in this process. */
export class InProcessConsents implements ConsentStore {
  /** By tenant, workflow, destination and kind. */
  private readonly decided = new Map<string, TenantConsentRow>();

  async consents(taskId: string, workflow: string): Promise<readonly ConsentRow[]> {
    const rows = (await this.allConsents(tenantOf(taskId))).filter((row) => row.workflow === workflow);
    return rows.map(({ tenant: _tenant, ...row }) => row);
  }

  async keepConsents(taskId: string, rows: readonly ConsentRow[]): Promise<void> {
    const tenant = tenantOf(taskId);
    for (const row of rows) this.decided.set(keyOf({ ...row, tenant }), { ...row, tenant });
  }

  async allConsents(tenant?: string): Promise<readonly TenantConsentRow[]> {
    const keys = [...this.decided.keys()].toSorted();
    const rows = keys.flatMap((key) => this.decided.get(key) ?? []);
    return tenant === undefined ? rows : rows.filter((row) => row.tenant === tenant);
  }

  async withdrawConsents(filter: ConsentFilter): Promise<number> {
    const named = Object.entries(filter).filter(([, value]) => value !== undefined);
    const withdrawn = [...this.decided].filter(([, row]) =>
      named.every(([name, value]) => row[name as keyof ConsentFilter] === value),
    );
    for (const [key] of withdrawn) this.decided.delete(key);
    return withdrawn.length;
  }
}

/** Sorts as the columns of a database do. */
function keyOf({ tenant, workflow, destination, kind }: TenantConsentRow): string {
  return [tenant, workflow, destination, kind].join("\u0000");
}
