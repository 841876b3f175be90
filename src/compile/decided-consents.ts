import { askedConsent } from "../people/consent-request.ts";
import type { Request } from "../people/requests.ts";
import type { TaskStore } from "./store.ts";

/** Whether a request asks for a consent that was given or refused elsewhere meanwhile. */
export async function isDecided(
  store: Pick<TaskStore, "consents">,
  taskId: string,
  request: Pick<Request, "id" | "tool" | "args">,
): Promise<boolean> {
  const asked = askedConsent(request);
  if (!asked) return false;
  const { workflow, destination, kinds } = asked;
  const rows = (await store.consents(taskId, workflow)).filter((row) => row.destination === destination);
  return kinds.every((kind) => rows.some((row) => row.kind === kind));
}

/** Requests without consents that were given or refused elsewhere meanwhile. */
export async function undecided<Asked extends Pick<Request, "id" | "tool" | "args">>(
  store: Pick<TaskStore, "consents">,
  taskId: string,
  requests: readonly Asked[],
): Promise<readonly Asked[]> {
  const decided = await Promise.all(requests.map((request) => isDecided(store, taskId, request)));
  return requests.filter((_, index) => !decided[index]);
}
