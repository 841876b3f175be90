import { WorkflowError } from "../errors.ts";

const KEY = "__statecard_person";

/** A person whose name the calling program has established. JSON cannot make one, so no client can. */
class Person {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  static nameOf(value: unknown): string | null {
    return typeof value === "object" && value !== null && #name in value ? value.#name : null;
  }
}

/**
 * Says who answers, for `configurable`. Call it only with a name that your program has verified: the
 * login of a session, the owner of a token. Approvals that name approvers, or need several, are refused
 * without it.
 *
 * @throws INVALID_OPTIONS for an empty name.
 * @example await graph.invoke(answer(paused, "approve"), { configurable: { thread_id: "t-1", ...signedIn("ada") } })
 */
export function signedIn(name: string): Readonly<Record<string, unknown>> {
  if (name.trim() === "") throw new WorkflowError("INVALID_OPTIONS", "a person's name is empty");
  return { [KEY]: new Person(name) };
}

/** The name of whoever is signed in; null where nobody is, whatever a client claims. */
export function personOf(configurable: Readonly<Record<string, unknown>> | undefined): string | null {
  return Person.nameOf(configurable?.[KEY]);
}
