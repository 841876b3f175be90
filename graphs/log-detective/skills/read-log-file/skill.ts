import { z } from "zod";
import { locate, logFolders } from "../../folders.ts";
import { failure, readParameters, type SkillContext, type SkillResult } from "../../protocol.ts";
import { filterOf } from "./filter.ts";
import { LogError } from "./open-log.ts";
import { scanLog, type LogScan } from "./scan.ts";
import { momentOf, readStamp } from "./stamps.ts";
import { COUNT_KEYS, LEVELS } from "./traits.ts";

const MAX_SHOWN = 25;
const moment = z
  .string()
  .regex(/^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?)?$/, "write it as 2026-03-01T10:00");

/** What it takes. */
const schema = z.object({
  file: z.string().min(1).max(1000),
  keywords: z.array(z.string().min(1).max(100)).max(10).default([]),
  level: z.enum(LEVELS).optional(),
  from: moment.optional(),
  to: moment.optional(),
  count_by: z.enum(COUNT_KEYS).optional(),
  from_line: z.number().int().min(1).default(1),
  limit: z.number().int().min(1).max(MAX_SHOWN).default(8),
});

/** What it gives: the scan, with the filter that it belongs to in words. */
export interface Reading extends LogScan {
  readonly file: string;
  readonly filter: string;
}

/** Reads a log and gives the lines that match, their numbers, counts and levels. */
export async function execute(given: unknown, context: SkillContext): Promise<SkillResult<Reading>> {
  const read = readParameters(schema, given);
  if (!read.ok) return read.failed;
  const asked = read.parameters;
  try {
    const path = placeOf(asked.file, context);
    const filter = {
      keywords: asked.keywords,
      level: asked.level ?? null,
      from: readMoment(asked.from),
      to: readMoment(asked.to),
      fromLine: asked.from_line,
      limit: asked.limit,
      countBy: asked.count_by ?? null,
    };
    const scan = await scanLog(path, filter, context.signal);
    const told = filterOf(asked);
    const isTooMuch = told === "all lines" && scan.matched > asked.limit;
    const levels = Object.entries(scan.levels).map(([level, count]) => `${count} ${level}`);
    return {
      status: isTooMuch ? "require_more" : "success",
      output: { file: asked.file, filter: told, ...scan },
      newMemories: [
        {
          type: "fact",
          text: `${asked.file}, ${told}: ${scan.matched} of ${scan.lines} lines (${levels.join(", ") || "no levels"})`,
          priority: 1,
        },
      ],
      metadata: { lines: scan.lines, matched: scan.matched },
    };
  } catch (error) {
    if (error instanceof LogError) return failure(error.type, error.message, error.advice);
    throw error;
  }
}

/** Where the log lies. Once one has been read, text in it cannot lead to another file. */
function placeOf(file: string, { clients, state }: SkillContext): string {
  const opened = openedLog(state.log);
  if (opened !== null && opened !== file) {
    throw new LogError("OTHER_LOG", `this task is about ${opened}`, "read that one; another log needs another task");
  }
  const place = locate(file, clients);
  if (place.allowed) return place.path;
  const message = `${file} is in none of the folders for logs: ${logFolders(clients).join(", ")}`;
  throw new LogError("NOT_ALLOWED", message, "ask for a log in one of them");
}

function openedLog(log: unknown): string | null {
  return typeof log === "object" && log !== null && "file" in log && typeof log.file === "string" ? log.file : null;
}

function readMoment(text: string | undefined): number | null {
  if (text === undefined) return null;
  const [, date = "", time = "00:00", second = ":00", zone = ""] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(.*))?$/.exec(text) ?? [];
  const stamp = readStamp(`${date}T${time}${second}${zone}`);
  if (stamp === null) throw new LogError("NO_TIME", `${text} is no time`, "write it as 2026-03-01T10:00");
  return momentOf(stamp, 0);
}
