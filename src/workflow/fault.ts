/** One thing wrong with a definition: where, what kind, and what to do. */
export interface Fault {
  readonly path: string;
  readonly code:
    | "INVALID_NAME"
    | "INVALID_VERSION"
    | "INVALID_LIMIT"
    | "INVALID_STEP"
    | "UNKNOWN_STEP"
    | "UNKNOWN_FIELD"
    | "UNKNOWN_KEY"
    | "UNREACHABLE"
    | "DEAD_END"
    | "UNLIMITED_LOOP"
    | "UNWRITTEN_FIELD"
    | "UNSERIALIZABLE_FIELD"
    | "RUNTIME_ONLY"
    | "UNKNOWN_TOOL"
    | "UNUSED_TOOL"
    | "INVALID_TOOL"
    | "INVALID_ROLE"
    | "APPROVAL_WITHOUT_TOOL"
    | "INVALID_APPROVAL"
    | "INVALID_MIGRATION"
    | "CONTRADICTION";
  readonly message: string;
}

/** What workflows, steps, fields and tools may be called. */
export const NAME = /^[\p{L}_][\p{L}\p{N}_-]{0,63}$/u;
