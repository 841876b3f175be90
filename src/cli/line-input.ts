import { createInterface, type Interface } from "node:readline";
import { printable, type Terminal } from "./terminal.ts";

const MAX_LINE = 100_000;
const CLEAR_LINE = "\r\u001b[K";

/** Lines of the standard input, one at a time; null at its end or on Ctrl-C. */
export class LineInput {
  private readonly reader: Interface;
  private readonly lines: string[] = [];
  private waiting: ((line: string | null) => void) | null = null;
  private ended = false;
  readonly interactive = process.stdin.isTTY;

  constructor() {
    this.reader = createInterface({
      input: process.stdin,
      output: this.interactive ? process.stdout : undefined,
      terminal: this.interactive,
    });
    this.reader.on("line", (line) => this.deliver(line.slice(0, MAX_LINE)));
    this.reader.on("close", () => this.end());
    // A terminal in raw mode sends no signal: pass Ctrl-C on to whatever runs.
    this.reader.on("SIGINT", () => {
      process.emit("SIGINT", "SIGINT");
      this.end();
    });
  }

  next(terminal: Terminal): Promise<string | null> {
    if (this.interactive) {
      this.reader.setPrompt(terminal.marks.prompt);
      this.reader.prompt();
    }
    const line = this.lines.shift();
    if (line !== undefined) {
      if (!this.interactive) process.stdout.write(`> ${printable(line.slice(0, 200))}\n`);
      return Promise.resolve(line);
    }
    if (this.ended) return Promise.resolve(null);
    return new Promise((resolve) => (this.waiting = resolve));
  }

  /** Prints a line above what is being typed. */
  tell(line: string): void {
    const isTyping = this.interactive && this.waiting !== null;
    process.stdout.write(`${isTyping ? CLEAR_LINE : ""}${line}\n`);
    if (isTyping) this.reader.prompt(true);
  }

  close(): void {
    this.reader.close();
  }

  private deliver(line: string): void {
    if (this.waiting) {
      if (!this.interactive) process.stdout.write(`> ${printable(line.slice(0, 200))}\n`);
      this.waiting(line);
      this.waiting = null;
    } else this.lines.push(line);
  }

  private end(): void {
    this.ended = true;
    this.waiting?.(null);
    this.waiting = null;
  }
}
