import { TENANT_MARK } from "../compile/task-id.ts";
import { WorkflowError } from "../errors.ts";

/**
 * What the stored ids of a tenant's tasks begin with; empty for the tasks of no tenant. So two
 * tenants can use one id, and no query that forgets about tenants can mix them. Outside of the database the
 * prefix is never shown.
 */
export function tenantPrefix(tenant: string): string {
  return tenant === "" ? "" : `${TENANT_MARK}${tenant}/`;
}

/** A task's stored id; null where the id is that of another tenant's task. */
export function storedTaskId(tenant: string, taskId: string): string | null {
  if (tenant === "" && taskId.startsWith(TENANT_MARK)) return null;
  return tenantPrefix(tenant) + taskId;
}

/** @throws USAGE. */
export function checkTenant(tenant: string): string {
  if (/^[a-z0-9][a-z0-9._-]{0,63}$/.test(tenant)) return tenant;
  throw new WorkflowError(
    "USAGE",
    "a tenant's name has 1 to 64 small letters, digits, dots, dashes and underscores, and begins with a letter or digit",
  );
}
