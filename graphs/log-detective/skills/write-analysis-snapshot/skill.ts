import { z } from "zod";
import { failure, readParameters, type SkillContext, type SkillResult } from "../../protocol.ts";

/** What it takes. */
const schema = z.object({
  action: z.enum(["write", "read"]),
  step: z.number().int().min(1).max(99).optional(),
  title: z.string().min(1).max(120).optional(),
  facts: z.array(z.string().min(1).max(240)).max(10).default([]),
  open: z.array(z.string().min(1).max(240)).max(5).default([]),
});

export const snapshotSchema = z.object({
  step: z.number().int(),
  title: z.string(),
  facts: z.array(z.string()),
  open: z.array(z.string()),
});
/** What was known at one point of an analysis. */
export type Snapshot = z.infer<typeof snapshotSchema>;

/** What it gives: the snapshot that was written or read. */
export interface SnapshotOutput {
  readonly action: "write" | "read";
  readonly snapshot: Snapshot;
}

/** Keeps what is known so far under the number of a step, or reads it back. The task's state holds it. */
export function execute(given: unknown, { state }: SkillContext): SkillResult<SnapshotOutput> {
  const read = readParameters(schema, given);
  if (!read.ok) return read.failed;
  const { action, step, title, facts, open } = read.parameters;
  const known = z.array(snapshotSchema).safeParse(state.snapshots ?? []).data ?? [];
  if (action === "read") {
    const snapshot = step === undefined ? known.at(-1) : known.findLast((one) => one.step === step);
    if (snapshot) return { status: "success", output: { action, snapshot } };
    const steps = known.map((one) => one.step).join(", ") || "none";
    return failure("NO_SNAPSHOT", `there is no snapshot of step ${step ?? "any"}`, `there are: ${steps}`);
  }
  if (title === undefined || facts.length + open.length === 0) {
    return failure("EMPTY_SNAPSHOT", "a snapshot needs a title and facts or open points", "give them");
  }
  const snapshot = { step: step ?? (known.at(-1)?.step ?? 0) + 1, title, facts, open };
  const text = `step ${snapshot.step}, ${title}: ${facts.join("; ")}`.slice(0, 400);
  return {
    status: "success",
    output: { action, snapshot },
    newMemories: [{ type: "snapshot", text, priority: 3 }],
    metadata: { facts: facts.length, open: open.length },
  };
}
