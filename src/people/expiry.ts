import type { Clock } from "../internal/clock.ts";
import type { Request } from "./requests.ts";

/** Whether the time to answer a request is over. */
export function isExpired(request: Request, clock: Clock): boolean {
  return request.expiresAt !== undefined && clock.now() >= request.expiresAt;
}
