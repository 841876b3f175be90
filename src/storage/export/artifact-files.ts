import { z } from "zod";
import type { TaskEvent } from "../../compile/store.ts";
import { WorkflowError } from "../../errors.ts";
import type { Artifact } from "../../workflow/artifact.ts";
import { contentHash, type LoggedArtifact } from "../artifacts.ts";

// Every call that set something aside says so where its result is logged: what an export holds, and how it
// is checked, follows from the log alone.
const returnedSchema = z.looseObject({
  result: z.looseObject({ tool: z.string() }),
  artifact: z.looseObject({
    // Half a surrogate pair can be in no file's name.
    id: z.string().regex(/^[^\ud800-\udfff]{1,200}$/u),
    kind: z.enum(["json", "text"]),
    bytes: z.number().int().min(0),
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
  }),
});

/** The file of an artifact within `artifacts/`. Whatever the id is, this names no other folder. */
export function artifactFile({ id, kind }: Pick<LoggedArtifact, "id" | "kind">): string {
  return `${encodeURIComponent(id)}.${kind === "json" ? "json" : "txt"}`;
}

/** Whether a file may be one that an export has written. */
export function isArtifactFile(name: string): boolean {
  return /-[0-9a-f]{8}\.(?:json|txt)$/.test(name);
}

/**
 * Reads the artifacts that a log names, and checks each against it. Pure but for `read`.
 *
 * @param read a file of `artifacts/`; null where it is missing.
 * @throws INVALID_EXPORT where one is missing or is not what was written.
 */
export function checkArtifacts(
  events: readonly TaskEvent[],
  read: (name: string) => Uint8Array | null,
): readonly Artifact[] {
  const known = new Map<string, Artifact>();
  for (const { kind, sequence, at, data } of events) {
    if (kind !== "returned" || data.artifact === undefined) continue;
    const parsed = returnedSchema.safeParse(data);
    if (!parsed.success) throw unfit(sequence, `entry ${sequence} of events.log names an artifact that cannot be one`);
    const { artifact, result } = parsed.data;
    const file = artifactFile(artifact);
    const content = read(file);
    if (!content) throw unfit(sequence, `artifacts/${file} is missing: entry ${sequence} of events.log names it`);
    if (contentHash(content) !== artifact.sha256) {
      throw unfit(sequence, `artifacts/${file} was changed: it is not what entry ${sequence} of events.log names`);
    }
    const { id, kind: form, bytes } = artifact;
    known.set(id, { id, tool: result.tool, bytes, at, kind: form, text: Buffer.from(content).toString() });
  }
  return [...known.values()];
}

function unfit(entry: number, why: string): WorkflowError {
  return new WorkflowError("INVALID_EXPORT", why, { details: { entry } });
}
