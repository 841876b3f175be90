/** The time at the beginning of a line, as it is written there. */
export interface Stamp {
  readonly format: "ISO" | "asctime" | "syslog";
  /** Null in the format of syslog, which has none. */
  readonly year: number | null;
  /** 0 to 11. */
  readonly month: number;
  readonly day: number;
  /** Milliseconds since midnight. */
  readonly time: number;
  /** Minutes east of UTC; 0 where the line does not say. */
  readonly offset: number;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const PRIORITY = String.raw`^(?:<\d{1,3}>(?:\d )?)?\[?`;
const TIME = String.raw`(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?`;
const ISO = new RegExp(String.raw`${PRIORITY}(\d{4})-(\d\d)-(\d\d)[T ]${TIME} ?(Z|[+-]\d\d:?\d\d)?`);
const SYSLOG = new RegExp(
  String.raw`${PRIORITY}(?:(?:Sun|Mon|Tue|Wed|Thu|Fri|Sat) )?([A-Z][a-z]{2}) {1,2}(\d{1,2}) ${TIME}(?: (\d{4})\b)?`,
);
const MINUTE_MS = 60_000;

/** Reads the time stamp that a line begins with; null where there is none. Pure. */
export function readStamp(line: string): Stamp | null {
  const head = line.slice(0, 64);
  const iso = ISO.exec(head);
  if (iso) {
    const [, year, month, day, hour, minute, second, fraction, zone] = iso;
    const stamp = {
      format: "ISO" as const,
      year: Number(year),
      month: Number(month) - 1,
      day: Number(day),
      time: millis(hour, minute, second, fraction),
      offset: offsetOf(zone),
    };
    return isDate(stamp) ? stamp : null;
  }
  const [, name = "", day, hour, minute, second, fraction, year] = SYSLOG.exec(head) ?? [];
  const month = MONTHS.indexOf(name);
  if (month === -1) return null;
  const stamp: Stamp = {
    format: year === undefined ? "syslog" : "asctime",
    year: year === undefined ? null : Number(year),
    month,
    day: Number(day),
    time: millis(hour, minute, second, fraction),
    offset: 0,
  };
  return isDate(stamp) ? stamp : null;
}

function millis(hour = "", minute = "", second = "", fraction = ""): number {
  const ms = Number(`0.${fraction || "0"}`) * 1000;
  return (Number(hour) * 60 + Number(minute)) * MINUTE_MS + Number(second) * 1000 + Math.floor(ms);
}

function offsetOf(zone: string | undefined): number {
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)$/.exec(zone ?? "") ?? [];
  const size = Number(hours ?? 0) * 60 + Number(minutes ?? 0);
  return sign === "-" ? -size : size;
}

function isDate({ month, day, time }: Pick<Stamp, "month" | "day" | "time">): boolean {
  return month >= 0 && month < 12 && day >= 1 && day <= 31 && time <= 24 * 60 * MINUTE_MS;
}

/** The moment of a stamp, in milliseconds since 1970, where `year` is that of a stamp without one. Pure. */
export function momentOf(stamp: Stamp, year: number): number {
  return Date.UTC(stamp.year ?? year, stamp.month, stamp.day) + stamp.time - stamp.offset * MINUTE_MS;
}

/** Counts the turns of the year in a log whose stamps have no year. */
export class YearTurns {
  /** How many turns there were so far. */
  turns = 0;
  private lastMonth: number | null = null;
  private last: Stamp | null = null;

  take(stamp: Stamp): void {
    if (stamp.year !== null) return;
    // From autumn back to spring is a new year; lines that are a little out of order are not.
    if (this.lastMonth !== null && this.lastMonth - stamp.month >= 6) this.turns++;
    // A line of December among those of January was late.
    else if (this.lastMonth !== null && this.turns > 0 && stamp.month - this.lastMonth >= 10) this.turns--;
    this.lastMonth = stamp.month;
    this.last = stamp;
  }

  /**
   * The year of the log's first stamp, if its last line is no younger than the file: the latest year in which
   * the last stamp is not after the file's date (a day of it is granted, since logs have time zones).
   */
  firstYear(modifiedMs: number): number {
    const latest = new Date(modifiedMs + 24 * 60 * MINUTE_MS);
    const year = latest.getUTCFullYear();
    const isLater = this.last !== null && momentOf(this.last, year) > latest.getTime();
    return year - (isLater ? 1 : 0) - this.turns;
  }
}

/** A moment as text, to the second, in UTC or as the log has it. Pure. */
export function tellMoment(moment: number): string {
  return new Date(moment).toISOString().slice(0, 19);
}
