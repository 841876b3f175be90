/** What a report can rest on, by its sign: lines that were read (`L123`), readings (`R2`), known issues (`KB-01`). */
export type Sources = ReadonlyMap<string, string>;

/** A line of a report that nothing holds up. */
export interface Unsupported {
  readonly line: string;
  readonly reason: string;
}

/** The fields of the state that hold sources, as texts that begin with their sign. */
export interface Evidence {
  readonly lines?: readonly string[] | null;
  readonly readings?: readonly string[] | null;
  readonly knowledge?: readonly string[] | null;
}

const SIGN = /\b(?:L\d+|R\d+|KB-\d+)\b/g;
const QUOTE = /"([^"]+)"/g;
const INSUFFICIENT = "The information is not sufficient";
/** Words with a digit in them: numbers, addresses, names of devices. */
const FIGURE = /[\w.:/-]*\d[\w.:/-]*/g;
/** What registers are called, and addresses of them. */
const REGISTER = /\b(?:0x[\da-f]+|[A-Z]{2,}\d*_[A-Z\d_]{2,})\b/gi;
const MARK = " [not supported by what was read]";
/** A quote that is shorter proves little, so no line is looked up by it. */
const TELLING = 8;

/** All that the state says was read, by sign. Pure. */
export function sourcesOf({ lines, readings, knowledge }: Evidence): Sources {
  const all = [lines, readings, knowledge].flatMap((texts) => texts ?? []);
  return new Map(all.map((text) => [text.split(" ", 1)[0] ?? "", plain(text)]));
}

/** A text that can stand between quotation marks. Pure. */
export function unquoted(text: string): string {
  return plain(text).trim();
}

function plain(text: string): string {
  return text.replaceAll(/["“”]/g, "'").replaceAll(/\s+/g, " ");
}

/**
 * Checks what a report claims against what was read. The conclusion and each piece of evidence have to cite;
 * what they cite has to have been read; what they quote has to stand there, and so has every figure in them. A
 * conclusion may rest only on what is quoted as evidence. Recommendations and open points may name no register
 * that nobody has read of. A report that begins otherwise is taken for evidence all through. What a claim makes
 * of its quotes in words of its own, code cannot judge. Pure.
 */
export function checkReport(report: string, sources: Sources): readonly Unsupported[] {
  const claims = claimsIn(report);
  const quoted = new Set(claims.flatMap(({ part, line }) => (part === "evidence" ? signsIn(line) : [])));
  return claims.flatMap(({ part, line }) => {
    const reason = part === "advice" ? adviceFault(line, sources) : claimFault(line, part, sources, quoted);
    return reason === null ? [] : [{ line, reason }];
  });
}

interface Claim {
  readonly part: "conclusion" | "evidence" | "advice";
  readonly line: string;
}

function claimsIn(report: string): readonly Claim[] {
  let part: Claim["part"] = "evidence";
  const claims: Claim[] = [];
  for (const line of report.split("\n").filter((one) => one.trim() !== "")) {
    if (/^Evidence:\s*$/.test(line)) part = "evidence";
    else if (/^(?:Recommendations|Open):\s*$/.test(line)) part = "advice";
    else claims.push({ part: line.startsWith("Conclusion: ") ? "conclusion" : part, line });
  }
  return claims;
}

function claimFault(line: string, part: Claim["part"], sources: Sources, quoted: ReadonlySet<string>): string | null {
  const signs = signsIn(line);
  if (signs.length === 0) {
    const isOpen = part === "conclusion" && line.startsWith(`Conclusion: ${INSUFFICIENT}`) && !hasFigures(line);
    return isOpen ? null : "it cites no line";
  }
  const unread = signs.find((sign) => !sources.has(sign));
  if (unread !== undefined) return `${unread} was not read`;
  const texts = signs.map((sign) => sources.get(sign) ?? "");
  const quotes = quotesIn(line);
  const missing = quotes.find((quote) => !texts.some((text) => text.includes(quote)));
  if (missing !== undefined) return `"${missing}" does not stand in ${signs.join(", ")}`;
  if (part === "evidence") {
    const isQuoted = (sign: string) => quotes.some((quote) => sources.get(sign)?.includes(quote));
    // An issue may be named to say what a line means; alone it has to be quoted too.
    const empty = signs.find((sign, index) => (index === 0 || !sign.startsWith("KB-")) && !isQuoted(sign));
    if (empty !== undefined) return `nothing of ${empty} is quoted`;
  } else {
    const bare = signs.find((sign) => !sign.startsWith("KB-") && !quoted.has(sign));
    if (bare !== undefined) return `${bare} is not among the evidence`;
  }
  const figure = figuresIn(line).find((one) => !texts.some((text) => holds(text, one)));
  return figure === undefined ? null : `${figure} does not stand in ${signs.join(", ")}`;
}

function adviceFault(line: string, sources: Sources): string | null {
  const known = [...sources.values()];
  const guessed = (line.match(REGISTER) ?? []).find((name) => !known.some((text) => holds(text, name)));
  if (guessed !== undefined) return `nothing that was read names ${guessed}`;
  const unread = signsIn(line).find((sign) => !sources.has(sign));
  return unread === undefined ? null : `${unread} was not read`;
}

function signsIn(line: string): readonly string[] {
  return [...new Set(line.replaceAll(QUOTE, " ").match(SIGN) ?? [])];
}

function quotesIn(line: string): readonly string[] {
  return [...line.matchAll(QUOTE)].map(([, quote = ""]) => plain(quote).trim());
}

function figuresIn(line: string): readonly string[] {
  const bare = line
    .replaceAll(QUOTE, " ")
    .replaceAll(SIGN, " ")
    .replace(/^\d+\. /, "");
  return (bare.match(FIGURE) ?? []).map((figure) => figure.replace(/[.:/-]+$/, ""));
}

function hasFigures(line: string): boolean {
  return figuresIn(line).length > 0 || quotesIn(line).length > 0;
}

/** Whether a text has a word as a whole word. */
function holds(text: string, word: string): boolean {
  const escaped = word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(String.raw`(?<![\w.])${escaped}(?![\w]|\.\w)`, "i").test(text);
}

/**
 * Puts right what can be put right without judgement: a quote that stands in another line that was read, and in
 * only one, gets the number of that line. Pure.
 */
export function withRightLines(report: string, sources: Sources): string {
  const wrong = new Set(checkReport(report, sources).map(({ line }) => line));
  const mended = report.split("\n").map((line) => {
    const [sign, ...others] = signsIn(line).filter((one) => !one.startsWith("KB-"));
    const [quote, ...more] = quotesIn(line);
    if (!wrong.has(line) || !sign?.startsWith("L") || others.length + more.length > 0) return line;
    if (quote === undefined || quote.length < TELLING) return line;
    const places = [...sources].filter(([place, text]) => place.startsWith("L") && text.includes(quote));
    const [right] = places[0] ?? [];
    return places.length === 1 && right !== undefined ? line.replace(sign, right) : line;
  });
  return mended.join("\n");
}

/** A report in which every line that nothing holds up is marked as such. Pure. */
export function withMarks(report: string, sources: Sources): string {
  const wrong = new Set(checkReport(report, sources).map(({ line }) => line));
  return report
    .split("\n")
    .map((line) => (wrong.has(line) ? `${line}${MARK}` : line))
    .join("\n");
}
