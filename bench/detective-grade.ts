import type { GeneratedTask, Truth } from "../test/support/log-generator.ts";

/** A report of the log detective, taken apart. */
export interface ReadReport {
  readonly conclusion: string;
  /** Whether it says that the information is not sufficient. */
  readonly isInsufficient: boolean;
  readonly issues: readonly string[];
  /** What is quoted as evidence, by its sign. */
  readonly quotes: readonly { readonly sign: string; readonly quote: string }[];
  /** The numbers of the lines that it cites outside of quotes. */
  readonly lines: readonly number[];
  readonly isMarked: boolean;
}

/** Takes a report apart, without any code of the example. */
export function readReport(report: string): ReadReport {
  const [conclusion = ""] = report.split("\n");
  const bare = report.replaceAll(/"[^"]*"/g, "");
  return {
    conclusion: conclusion.replace("Conclusion: ", ""),
    isInsufficient: conclusion.startsWith("Conclusion: The information is not sufficient"),
    issues: [...new Set(conclusion.match(/KB-\d+/g) ?? [])],
    quotes: [...report.matchAll(/^\d+\. (\w+): "([^"]*)"/gm)].map(([, sign = "", quote = ""]) => ({ sign, quote })),
    lines: [...new Set([...bare.matchAll(/\bL(\d+)\b/g)].map(([, number]) => Number(number)))],
    isMarked: report.includes("[not supported by what was read]"),
  };
}

/** Why a report is not the right answer; null where it is. */
export function faultOf(report: string, truth: Truth): string | null {
  const read = readReport(report);
  if (read.isMarked) return "a line is marked";
  const isWithin = (numbers: readonly number[]) => read.lines.every((line) => numbers.includes(line));
  switch (truth.kind) {
    case "nothing":
      if (!read.isInsufficient) return "it concludes from nothing";
      return read.lines.length === 0 ? null : "it cites lines that prove nothing";
    case "symptom":
      if (!read.isInsufficient) return "it concludes without a sign of a cause";
      return read.lines.length > 0 && isWithin(truth.symptoms) ? null : "it does not cite the symptom alone";
    case "cause": {
      if (read.isInsufficient || read.issues.join() !== truth.issue)
        return `it names ${read.issues.join() || "no cause"}`;
      if (!isWithin([...truth.symptoms, ...truth.signs])) return "it cites lines that are not about it";
      return read.lines.some((line) => truth.signs.includes(line)) ? null : "it cites no sign of the cause";
    }
    case "count": {
      if (!read.conclusion.startsWith(`${truth.lines.length} of `)) return "it counts wrong";
      return read.lines.length > 0 && isWithin(truth.lines) ? null : "it cites other lines";
    }
  }
}

/** The quotes of a report that do not stand in the log where it says; by the log's text alone. */
export function wrongQuotes(report: string, log: string): readonly string[] {
  const lines = log.split("\n");
  const plain = (text: string) => text.replaceAll('"', "'").replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ");
  return readReport(report)
    .quotes.filter(({ sign }) => sign.startsWith("L"))
    .filter(({ sign, quote }) => !plain(lines[Number(sign.slice(1)) - 1] ?? "").includes(plain(quote)))
    .map(({ sign, quote }) => `${sign}: ${quote}`);
}

/** How many tasks there are of each kind. */
export function kindsOf(tasks: readonly GeneratedTask[]): Readonly<Record<Truth["kind"], number>> {
  const counts = { cause: 0, symptom: 0, nothing: 0, count: 0 };
  for (const { truth } of tasks) counts[truth.kind]++;
  return counts;
}
