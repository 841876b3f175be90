/** How serious a line says it is, from the most serious on. */
export const LEVELS = ["fatal", "error", "warning", "info", "debug", "none"] as const;
export type Level = (typeof LEVELS)[number];

/** What lines can be counted by. */
export const COUNT_KEYS = ["address", "user", "process", "level", "hour", "message"] as const;
export type CountKey = (typeof COUNT_KEYS)[number];

const NAMES: Readonly<Record<string, Level>> = {
  emerg: "fatal",
  alert: "fatal",
  fatal: "fatal",
  critical: "fatal",
  crit: "fatal",
  panic: "fatal",
  error: "error",
  err: "error",
  warning: "warning",
  warn: "warning",
  notice: "info",
  info: "info",
  debug: "debug",
  trace: "debug",
};
const ANY = Object.keys(NAMES).join("|");
// ERROR anywhere, [error] or <error> anywhere, error: or Error: before a text, "level":"error" in JSON.
const LEVEL = new RegExp(
  String.raw`\b(${ANY.toUpperCase()})\b|[[<(](${ANY})[\]>)]|\b((?:${ANY})|Error|Warning|Fatal|Critical)(?=: )|"level": ?"(${ANY})"`,
);

/** The level that a line names first; `none` where it names none. Pure. */
export function levelOf(line: string): Level {
  const found = LEVEL.exec(line);
  const name = found?.[1] ?? found?.[2] ?? found?.[3] ?? found?.[4];
  return (name === undefined ? undefined : NAMES[name.toLowerCase()]) ?? "none";
}

/** Whether a line's level is at least as serious as another. Pure. */
export function isAtLeast(level: Level, least: Level): boolean {
  return LEVELS.indexOf(level) <= LEVELS.indexOf(least);
}

const RHOST = /\brhost=([^\s;,]+)/;
const IP = /(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)/;
const FROM = /\bfrom ([\w.:-]*[.:][\w.:-]*\w)/;
const USER = /\buser=([^\s;,]+)|\b(?:invalid |illegal )?user (\S+) (?:from|\[)|\bfor (?!invalid |illegal )(\S+) from/;
const PROCESS = /\s([\w./-]+)(?:\([\w./-]+\))?(?:\[\d+\])?: /;

/** What a line has to be counted under; null where it has no such thing. Pure. */
export function traitOf(key: CountKey, line: string, moment: number | null): string | null {
  switch (key) {
    case "address":
      return RHOST.exec(line)?.[1] ?? IP.exec(line)?.[0] ?? FROM.exec(line)?.[1] ?? null;
    case "user": {
      const found = USER.exec(line);
      return found?.[1] ?? found?.[2] ?? found?.[3] ?? null;
    }
    case "process":
      return PROCESS.exec(line)?.[1] ?? null;
    case "level":
      return levelOf(line);
    case "hour":
      return moment === null ? null : `${new Date(moment).toISOString().slice(0, 13)}h`;
    case "message":
      return patternOf(line);
  }
}

const HEAD =
  /^(?:<\d+>)?\[?(?:\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?|(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} {1,2}\d{1,2} [\d:]+(?: \d{4})?)\]? */;

/** A line without its time stamp. Pure. */
export function messageOf(line: string): string {
  return line.replace(HEAD, "");
}

/** What lines that differ only in numbers have in common. */
function patternOf(line: string): string {
  return messageOf(line)
    .replace(/0x[\da-f]+|\d+/gi, "#")
    .slice(0, 100)
    .trim();
}
