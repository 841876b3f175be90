/** What a person has decided about one kind of data on its way to one destination. */
export interface ConsentRow {
  readonly workflow: string;
  /** Where the data would go. */
  readonly destination: string;
  /** What kind of data it is. */
  readonly kind: string;
  readonly isAllowed: boolean;
  /** Who decided; null where nobody was signed in. */
  readonly by: string | null;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** A decision in a list over tenants. */
export interface TenantConsentRow extends ConsentRow {
  /** The tenant it holds for; empty for the tasks of no tenant. */
  readonly tenant: string;
}

/** Which decisions are withdrawn. */
export interface ConsentFilter {
  /** Those of a tenant, with an empty text those of none; of all unless set. */
  readonly tenant?: string;
  readonly workflow: string;
  readonly destination?: string;
  readonly kind?: string;
}

/**
 * Where decisions about data are kept. They hold for all tasks of one workflow and tenant: a task's deletion
 * leaves them, and no export has them.
 */
export interface ConsentStore {
  /** What has been decided for the tenant that a task belongs to. */
  consents(taskId: string, workflow: string): Promise<readonly ConsentRow[]>;
  /** Keeps decisions for the tenant that a task belongs to; what is kept last holds. */
  keepConsents(taskId: string, rows: readonly ConsentRow[]): Promise<void>;
  /** Those of a tenant, with an empty text those of none; all unless set. By tenant, workflow, destination and kind. */
  allConsents(tenant?: string): Promise<readonly TenantConsentRow[]>;
  /** @returns how many were withdrawn. */
  withdrawConsents(filter: ConsentFilter): Promise<number>;
}
