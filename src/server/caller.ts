import { WorkflowError } from "../errors.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { storedTaskId, tenantPrefix } from "../storage/tenants.ts";

/** Who sent a request, as it was established. */
export interface Caller {
  readonly who: string;
  /** Empty where the person belongs to none. */
  readonly tenant: string;
}

/** What of a request tells who sent it. */
export interface Credentials {
  readonly authorization: string | null;
  readonly host: string | null;
  readonly origin: string | null;
  /** True where a proxy has passed the request on. */
  readonly isForwarded: boolean;
  /** The address at the other end of the connection; null where that is not known. */
  readonly remote: string | null;
}

const LOOPBACK_NAMES = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Whether an address is of this machine only. */
export function isLoopback(address: string): boolean {
  return /^(?:::ffff:)?127\./.test(address) || address === "::1" || address === "localhost";
}

/**
 * Establishes who sent a request: the owner of its bearer token; without any token in the database, on this
 * machine alone, the operating system's user.
 *
 * @param localUser the operating system's user.
 * @throws INVALID_TOKEN; FORBIDDEN where a web page or another host name uses the local user.
 */
export async function authenticate(store: SqlStore, credentials: Credentials, localUser: string): Promise<Caller> {
  const { authorization, remote } = credentials;
  if (authorization !== null) {
    const [, token] = /^Bearer +(\S+)$/i.exec(authorization) ?? [];
    const owner = token === undefined ? null : await store.tokens.ownerOf(token);
    if (owner) return { who: owner.name, tenant: owner.tenant };
    throw new WorkflowError(
      "INVALID_TOKEN",
      "this is not a valid token; one is made with: statecard token create NAME",
    );
  }
  if (remote === null || !isLoopback(remote) || credentials.isForwarded || (await store.tokens.hasAny())) {
    throw new WorkflowError(
      "INVALID_TOKEN",
      "sign in with a token: Authorization: Bearer …; one is made with: statecard token create NAME",
    );
  }
  requireLocal(credentials);
  return { who: localUser, tenant: "" };
}

/** A web page must not use the local user: neither from its own origin, nor by a name that it points here. */
function requireLocal({ host, origin }: Credentials): void {
  const named = (host ?? "").replace(/:\d+$/, "").toLowerCase();
  const isOwn = origin === null || origin.replace(/^https?:\/\//, "").toLowerCase() === host?.toLowerCase();
  if (LOOPBACK_NAMES.has(named) && isOwn) return;
  throw new WorkflowError(
    "FORBIDDEN",
    "without a token this server answers programs on this machine only; make one with: statecard token create NAME",
  );
}

/** A task's stored id, for a caller; null where no task of this caller can have this id. */
export function storedIdFor({ tenant }: Caller, taskId: string): string | null {
  return storedTaskId(tenant, taskId);
}

/** A stored id as its tenant knows it. */
export function shownId({ tenant }: Caller, stored: string): string {
  return stored.slice(tenantPrefix(tenant).length);
}

/** JSON text without what a tenant's ids begin with in the database. */
export function revealing({ tenant }: Caller): (text: string) => string {
  const prefix = tenantPrefix(tenant);
  return (text) => (prefix === "" ? text : text.replaceAll(prefix, ""));
}

/** A task in the caller's view: its own id wherever the stored one is. */
export function shown<Value>(caller: Caller, stored: string, value: Value): Value {
  if (caller.tenant === "") return value;
  const quoted = (id: string) => JSON.stringify(id).slice(1, -1);
  return JSON.parse(JSON.stringify(value).replaceAll(quoted(stored), quoted(shownId(caller, stored)))) as Value;
}
