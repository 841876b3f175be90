/** What is known of a big result without reading it. */
export interface ArtifactInfo {
  readonly id: string;
  /** The tool whose result it is. */
  readonly tool: string;
  /** In UTF-8. */
  readonly bytes: number;
  /** When it was stored, in milliseconds since 1970. */
  readonly at: number;
}

/** A big result, kept whole outside the state. */
export interface Artifact extends ArtifactInfo {
  readonly kind: "json" | "text";
  readonly text: string;
}

/** The artifacts of one task, for tools. */
export interface ArtifactReader {
  /** Null where the task has none with this id. */
  read(id: string): Promise<Artifact | null>;
  list(): Promise<readonly ArtifactInfo[]>;
}
