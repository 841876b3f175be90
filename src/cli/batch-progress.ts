import cliProgress from "cli-progress";
import type { BatchEvent, Outcome } from "../batch/batch.ts";
import type { RowStatus } from "../batch/rows.ts";
import { count, lasting, printable, type Terminal } from "./terminal.ts";

/** What is told while a batch runs. */
export interface BatchProgress {
  /**
   * @param name what people call the event's task.
   * @param finishedAs where a completed task's result stands; it may wait for a person.
   */
  tell(name: string, event: BatchEvent, finishedAs?: RowStatus): void;
  /** A line for people, beside the progress. */
  say(line: string): void;
  end(): void;
}

/** A bar at a terminal, a line for each task elsewhere; both beside the report, on the error output. */
export function batchProgress(terminal: Terminal, total: number): BatchProgress {
  const tally = new Tally(total, Date.now());
  return process.stderr.isTTY ? barOf(terminal, tally) : linesOf(tally);
}

/** Says nothing, for programs. */
export const SILENT: BatchProgress = { tell() {}, say() {}, end() {} };

/** How many tasks are where. Pure but for its own counts. */
class Tally {
  readonly total: number;
  private readonly startedAt: number;
  private readonly outcomes = new Map<Outcome | RowStatus, number>();
  private readonly running = new Set<string>();
  private ran = 0;
  done = 0;

  constructor(total: number, startedAt: number) {
    this.total = total;
    this.startedAt = startedAt;
  }

  count(event: BatchEvent, finishedAs?: RowStatus): void {
    if (event.kind === "started") this.running.add(event.taskId);
    else this.running.delete(event.taskId);
    if (event.kind !== "settled") return;
    const { ran } = event.settled;
    const outcome = finishedAs ?? event.settled.outcome;
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
    this.done++;
    if (ran) this.ran++;
  }

  counts(): string {
    const all = [...this.outcomes].map(([outcome, number]) => `${count(number)} ${outcome}`);
    return [...all, ...(this.running.size > 0 ? [`${this.running.size} running`] : [])].join(", ");
  }

  /** By the tasks that were run here; those that were found done say nothing about the rest. */
  pace(now: number): string {
    const seconds = (now - this.startedAt) / 1000;
    if (this.ran === 0 || seconds <= 0) return "";
    const rate = this.ran / seconds;
    const left = ((this.total - this.done) / rate) * 1000;
    return `${rate < 10 ? rate.toFixed(1) : count(Math.round(rate))}/s${left > 0 ? `, ${lasting(left)} left` : ""}`;
  }
}

function linesOf(tally: Tally): BatchProgress {
  const say = (line: string) => void process.stderr.write(`${line}\n`);
  return {
    tell(name, event, finishedAs) {
      tally.count(event, finishedAs);
      const at = () => `${tally.done}/${tally.total}  ${printable(name)}  `;
      if (event.kind === "retry") {
        say(`${at()}will be tried again: ${event.error.code}: ${printable(event.error.message)}`);
      } else if (event.kind === "settled") {
        const { outcome, ran, error } = event.settled;
        say(`${at()}${finishedAs ?? outcome}${error ? `: ${error.code}` : ""}${ran ? "" : " (as it was found)"}`);
      }
    },
    say,
    end() {},
  };
}

function barOf(terminal: Terminal, tally: Tally): BatchProgress {
  const isPlain = terminal.marks.dot === "-";
  const bar = new cliProgress.SingleBar({
    format: `{bar} {value}/{total}  {pace}  {counts}`,
    barCompleteChar: isPlain ? "=" : "█",
    barIncompleteChar: isPlain ? "-" : "░",
    barsize: 24,
    stream: process.stderr,
    hideCursor: true,
    // Ctrl-C is for the batch.
    gracefulExit: false,
    linewrap: false,
  });
  const payload = () => ({ pace: tally.pace(Date.now()), counts: tally.counts() });
  bar.start(tally.total, 0, payload());
  const redraw = () => bar.update(tally.done, payload());
  return {
    tell(_name, event, finishedAs) {
      tally.count(event, finishedAs);
      redraw();
    },
    say(line) {
      bar.stop();
      process.stderr.write(`${line}\n`);
      bar.start(tally.total, tally.done, payload());
    },
    end() {
      redraw();
      bar.stop();
    },
  };
}
