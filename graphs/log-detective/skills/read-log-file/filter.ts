import type { CountKey, Level } from "./traits.ts";

/** What of a log is read. */
export interface Filter {
  readonly keywords?: readonly string[] | undefined;
  readonly level?: Level | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly count_by?: CountKey | undefined;
}

/** A filter in words, the same for the same filter: whoever looks for a reading finds it by them. */
export function filterOf({ keywords = [], level, from, to, count_by: countBy }: Filter): string {
  const parts = [
    keywords.length > 0 ? `with ${keywords.map((keyword) => `'${keyword}'`).join(" or ")}` : "",
    level === undefined ? "" : `of level ${level} or worse`,
    from === undefined ? "" : `from ${from}`,
    to === undefined ? "" : `before ${to}`,
    countBy === undefined ? "" : `counted by ${countBy}`,
  ];
  return parts.filter(Boolean).join(", ") || "all lines";
}
