import { z } from "zod";
import { jsonBytes } from "../internal/json.ts";
import { field, type Field } from "./fields.ts";

const RESOURCE_STATUSES = ["read", "written", "changed outside", "gone"] as const;

const resourceSchema = z.object({
  kind: z.enum(["file"]),
  /** Relative to the folder that the tools work in, with `/` between its parts. */
  path: z.string().min(1).max(400),
  /** SHA-256 of the bytes that the task knows, the first 16 hexadecimal digits. */
  checksum: z.string(),
  status: z.enum(RESOURCE_STATUSES),
});
/** Something outside of the state that a task works on, and how the task last knew it. */
export type Resource = z.infer<typeof resourceSchema>;

/** The most resources that a task keeps an eye on; of more, the latest. */
const MAX_RESOURCES = 100;

const resourceListSchema = z.array(resourceSchema).max(MAX_RESOURCES);

/**
 * A state field that holds the files that a task has read or written, each with its checksum. `fileTools`
 * keeps it; a model never writes it.
 *
 * @example
 * state: { resources: resourceField() }, tools: { readFile, editFile }
 */
export function resourceField(): Field<Resource[]> {
  return field(resourceListSchema)
    .describe("the files that were read or written, as they were last seen")
    .runtimeOnly();
}

/** The resources of a field's value; none where there is no valid list. Pure. */
export function resourcesIn(value: unknown): readonly Resource[] {
  const parsed = resourceListSchema.safeParse(value ?? []);
  return parsed.success ? parsed.data : [];
}

/** What the list may take of a field's 16,384 bytes. */
const MAX_BYTES = 15_000;

/**
 * The list with these resources as they are known now; each path is in it once, the latest last. Those that were
 * last seen longest ago go where there is no room: to be written, such a file has to be read again. Pure.
 */
export function withResources(known: readonly Resource[], latest: readonly Resource[]): Resource[] {
  const paths = new Set(latest.map(({ path }) => path));
  const all = [...known.filter(({ path }) => !paths.has(path)), ...latest].slice(-MAX_RESOURCES);
  while (jsonBytes(all) > MAX_BYTES) all.shift();
  return all;
}
