/** The longest line that is looked at whole. */
const MAX_LINE_BYTES = 64 * 1024;

/** One line of a log. */
export interface LogLine {
  /** From 1, as an editor counts. */
  readonly number: number;
  /** Without its end. Bytes that are no UTF-8 are replaced by U+FFFD. */
  readonly text: string;
  /** How many bytes of a very long line are missing at its end. */
  readonly cutBytes: number;
}

const NEWLINE = 10;
const RETURN = 13;

/**
 * Cuts chunks of bytes into lines, in memory that does not grow with their number or length. Characters whose
 * bytes are in two chunks stay whole; a line ends with LF or CR LF; the last one needs no end. The lines of one
 * chunk come together, since waiting for each would take longer than reading it.
 */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  maxBytes = MAX_LINE_BYTES,
): AsyncGenerator<readonly LogLine[]> {
  const cutter = new LineCutter(maxBytes);
  for await (const chunk of chunks) yield cutter.take(chunk);
  yield cutter.end();
}

class LineCutter {
  private readonly maxBytes: number;
  private number = 0;
  /** The beginning of a line whose end has not come yet, at most as long as what is kept of a line. */
  private begun: Buffer[] = [];
  private begunBytes = 0;
  private cutBytes = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  take(chunk: Buffer): readonly LogLine[] {
    const lines: LogLine[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.keep(chunk.subarray(start, end));
      lines.push(this.finish());
      start = end + 1;
    }
    // A copy, so that a short rest does not hold on to the whole chunk.
    if (start < chunk.length) this.keep(Buffer.from(chunk.subarray(start)));
    return lines;
  }

  end(): readonly LogLine[] {
    return this.begunBytes + this.cutBytes > 0 ? [this.finish()] : [];
  }

  private keep(bytes: Buffer): void {
    const kept = bytes.subarray(0, this.maxBytes - this.begunBytes);
    if (kept.length > 0) this.begun.push(kept);
    this.begunBytes += kept.length;
    this.cutBytes += bytes.length - kept.length;
  }

  private finish(): LogLine {
    const [first] = this.begun;
    let bytes = this.begun.length === 1 && first ? first : Buffer.concat(this.begun);
    let { cutBytes } = this;
    if (cutBytes > 0) {
      const end = wholeCharacters(bytes);
      cutBytes += bytes.length - end;
      bytes = bytes.subarray(0, end);
    } else if (bytes.at(-1) === RETURN) bytes = bytes.subarray(0, -1);
    this.number++;
    const hasMark = this.number === 1 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
    const text = bytes.toString("utf8", hasMark ? 3 : 0);
    this.begun = [];
    this.begunBytes = 0;
    this.cutBytes = 0;
    return { number: this.number, text, cutBytes };
  }
}

/** Where bytes that were cut anywhere have to end so that no character is cut. */
function wholeCharacters(bytes: Buffer): number {
  let start = bytes.length - 1;
  while (start > bytes.length - 4 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--;
  const lead = bytes[start] ?? 0;
  const needed = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return start + needed <= bytes.length ? bytes.length : start;
}
