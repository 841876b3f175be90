import type { Request } from "./requests.ts";

/**
 * Whether the time to answer a request is over.
 *
 * @param now milliseconds since the epoch.
 */
export function isExpired({ expiresAt }: Pick<Request, "expiresAt">, now: number): boolean {
  return expiresAt !== undefined && now >= expiresAt;
}
