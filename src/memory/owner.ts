import { WorkflowError } from "../errors.ts";
import { MEMORY_ROOT } from "./value.ts";

/** Whose memory it is. Memories of one owner are seen by no other: a user's own is not seen by the user's agents. */
export interface MemoryOwner {
  readonly user?: string;
  readonly agent?: string;
}

const MAX_NAME = 200;
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * The namespace of an owner in a LangGraph store. Names may hold any characters; different owners never get the
 * same namespace. Pure.
 *
 * @throws INVALID_OPTIONS for an owner without a name.
 */
export function namespaceOf({ user, agent }: MemoryOwner): string[] {
  if (user === undefined && agent === undefined) {
    throw new WorkflowError("INVALID_OPTIONS", "a memory needs an owner: a user, an agent, or both");
  }
  return [
    MEMORY_ROOT,
    ...(user === undefined ? [] : [`user=${labelOf("user", user)}`]),
    ...(agent === undefined ? [] : [`agent=${labelOf("agent", agent)}`]),
  ];
}

/** The owner of a namespace; null where it is none of ours. Pure. */
export function ownerOf(namespace: readonly string[]): MemoryOwner | null {
  const [root, ...labels] = namespace;
  if (root !== MEMORY_ROOT) return null;
  const owner: { user?: string; agent?: string } = {};
  for (const label of labels) {
    const [, kind, name] = /^(user|agent)=(.+)$/s.exec(label) ?? [];
    if (name === undefined) return null;
    owner[kind === "user" ? "user" : "agent"] = decodeURIComponent(name);
  }
  return owner;
}

/** LangGraph's labels hold neither periods nor colons; e-mail addresses and URLs do. */
function labelOf(kind: string, name: string): string {
  if (name === "" || name.length > MAX_NAME || LONE_SURROGATE.test(name)) {
    throw new WorkflowError(
      "INVALID_OPTIONS",
      `the name of a memory's ${kind} has to be a text of 1 to ${MAX_NAME} characters`,
    );
  }
  return encodeURIComponent(name).replaceAll(".", "%2E");
}
