import { renameSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { TimeLimits } from "../batch/attempt.ts";
import { runBatch, type BatchEvent, type BatchTask, type Settled } from "../batch/batch.ts";
import { csvReport, jsonReport, summarise, type BatchReport } from "../batch/report.ts";
import { completedAs, requireReview, reviewOf } from "../batch/review.ts";
import { readRow, type Row, type RowStatus } from "../batch/rows.ts";
import { withView } from "../compile/compile.ts";
import type { WorkflowGraph } from "../compile/workflow-graph.ts";
import { openStore } from "../storage/open-store.ts";
import { POLICIES, type Policy } from "../view/options.ts";
import { leftOut, openBatch, type OpenBatch } from "./batch-file.ts";
import { batchProgress, SILENT, type BatchProgress } from "./batch-progress.ts";
import { tableReport } from "./batch-table.ts";
import { EXIT, exitWith, usage } from "./exit.ts";
import { loadGraph, rememberGraph } from "./graphs.ts";
import { timeLimitsIn, wholeNumber, type CommonOptions, type ReportForm, type TimeLimitOptions } from "./options.ts";
import { onStop } from "./stop-signals.ts";
import { detectTerminal, shellWord } from "./terminal.ts";

export interface BatchCommandOptions extends CommonOptions, TimeLimitOptions {
  readonly workers?: string;
  readonly attempts?: string;
  readonly backoff?: string;
  readonly review?: boolean;
  readonly report?: ReportForm;
  readonly out?: string;
  readonly compare?: string;
}

const WORKERS = 4;
const ATTEMPTS = 3;
const BACKOFF_MS = 1000;
/** How long tasks have to finish the step that they are in, after Ctrl-C. */
const GRACE_MS = 5000;

/** The tasks of the file under one view policy. */
interface Variant {
  readonly policy: Policy | null;
  readonly graph: WorkflowGraph;
  readonly taskIds: readonly string[];
}

interface Settings {
  readonly workers: number;
  readonly attempts: number;
  readonly backoffMs: number;
  readonly limits: TimeLimits;
  readonly form: ReportForm;
  readonly policies: readonly Policy[];
}

/** `statecard batch`: runs every task of a file that is not done yet, and reports on all of them. */
export async function batchCommand(file: string, options: BatchCommandOptions): Promise<number> {
  const settings = settingsOf(options);
  const batch = openBatch(file);
  const name = options.graph ?? "";
  const store = openStore(options.db);
  const graph = await loadGraph(name, store);
  const variants = variantsOf(batch, graph, settings.policies);
  const progress = settings.form === "json" && options.out === undefined ? SILENT : progressOf(batch, variants);
  const signals = new Signals(progress);
  /** A finished task is not through before a person has approved its result. */
  const finishedAs = async (event: BatchEvent): Promise<RowStatus | undefined> => {
    if (progress === SILENT || event.kind !== "settled" || event.settled.outcome !== "completed") return undefined;
    const review = await reviewOf(store, event.taskId);
    return review === null && options.review ? "reviewing" : completedAs(review);
  };
  const settled = new Map<string, Settled>();
  let told = Promise.resolve();
  try {
    for (const variant of variants) {
      const labels = labelsOf(batch, variant);
      await runBatch(variant.graph, {
        ...settings,
        tasks: tasksOf(batch, variant),
        stop: signals.stop,
        cut: signals.cut,
        async beforeStart(taskId) {
          await rememberGraph(store, taskId, name);
          if (options.review) await requireReview(store, taskId, 0);
        },
        onEvent(event) {
          if (event.kind === "settled") settled.set(event.taskId, event.settled);
          signals.note(event);
          const label = labels.get(event.taskId) ?? event.taskId;
          told = told.then(async () => progress.tell(label, event, await finishedAs(event).catch(() => undefined)));
          // What fails here is thrown where all of it is awaited.
          told.catch(() => {});
        },
      });
    }
    await told;
  } finally {
    progress.end();
    signals.end();
  }
  const code = signals.stop.aborted
    ? stopped(file, options)
    : publish(
        await reportOf(batch, variants, settled, settings.attempts, options.review === true),
        settings.form,
        options,
      );
  // What was left behind at its time limit may hold the process, and nobody waits for it.
  return signals.leftBehind ? exitWith(code) : code;
}

/** @throws USAGE. */
function settingsOf(options: BatchCommandOptions): Settings {
  if (options.graph === undefined) throw usage("name the graph that the tasks are for, with --graph");
  if (options.review && options.compare !== undefined) {
    throw usage("--compare measures and --review publishes; choose one");
  }
  // Told before the work, not after it.
  if (options.out !== undefined && !statSync(dirname(options.out), { throwIfNoEntry: false })?.isDirectory()) {
    throw usage(`--out: there is no folder ${dirname(options.out)}`);
  }
  return {
    workers: wholeNumber("--workers", options.workers, 1, 1000) ?? WORKERS,
    attempts: wholeNumber("--attempts", options.attempts, 1, 100) ?? ATTEMPTS,
    backoffMs: wholeNumber("--backoff", options.backoff, 0, 3_600_000) ?? BACKOFF_MS,
    limits: timeLimitsIn(options),
    form: options.json ? "json" : (options.report ?? formOf(options.out)),
    policies: policiesIn(options.compare),
  };
}

function formOf(out: string | undefined): ReportForm {
  const ending = /\.(json|csv)$/i.exec(out ?? "")?.[1]?.toLowerCase();
  return ending === "json" || ending === "csv" ? ending : "table";
}

function policiesIn(compare: string | undefined): readonly Policy[] {
  const names = compare === undefined ? [] : compare.split(",").map((name) => name.trim());
  return [...new Set(names)].map((name) => {
    const policy = POLICIES.find((known) => known === name);
    if (policy === undefined) throw usage(`--compare: there is no policy "${name}"; there are: ${POLICIES.join(", ")}`);
    return policy;
  });
}

function variantsOf(batch: OpenBatch, graph: WorkflowGraph, policies: readonly Policy[]): readonly Variant[] {
  const { name } = graph.runtime.workflow;
  if (policies.length === 0)
    return [{ policy: null, graph, taskIds: batch.lines.map((line) => batch.taskId(name, line)) }];
  return policies.map((policy) => ({
    policy,
    graph: withView(graph, { policy }),
    taskIds: batch.lines.map((line) => batch.taskId(name, line, policy)),
  }));
}

function tasksOf(batch: OpenBatch, { taskIds }: Variant): readonly BatchTask[] {
  return batch.lines.map(({ input }, index) => ({ taskId: taskIds[index] ?? "", input }));
}

function labelsOf(batch: OpenBatch, { policy, taskIds }: Variant): ReadonlyMap<string, string> {
  const labels = batch.lines.map(({ id }) => (policy === null ? id : `${id} (${policy})`));
  return new Map(taskIds.map((taskId, index) => [taskId, labels[index] ?? taskId]));
}

function progressOf(batch: OpenBatch, variants: readonly Variant[]): BatchProgress {
  const progress = batchProgress(detectTerminal(process.stderr), batch.lines.length * variants.length);
  if (batch.broken.length > 0) progress.say(leftOut(batch.broken));
  return progress;
}

async function reportOf(
  batch: OpenBatch,
  variants: readonly Variant[],
  settled: ReadonlyMap<string, Settled>,
  maxAttempts: number,
  needsReview: boolean,
): Promise<BatchReport> {
  const rows: Row[] = [];
  let workflow = "";
  for (const { policy, graph, taskIds } of variants) {
    workflow = graph.runtime.workflow.name;
    for (const [index, line] of batch.lines.entries()) {
      const taskId = taskIds[index] ?? "";
      const head = needsReview ? await graph.runtime.store.look(taskId) : null;
      if (head) await requireReview(graph.runtime.store, taskId, head.execution.revision);
      const refused = settled.get(taskId)?.error ?? null;
      rows.push(await readRow(graph, { line, taskId, policy, refused, maxAttempts }));
    }
  }
  return { file: batch.file, workflow, summaries: summarise(rows), tasks: rows, broken: batch.broken };
}

/** Writes the report whole, or not at all. */
function publish(report: BatchReport, form: ReportForm, { out }: BatchCommandOptions): number {
  const text =
    form === "table" ? tableReport(detectTerminal(), report) : form === "json" ? jsonReport(report) : csvReport(report);
  if (out === undefined) {
    process.stdout.write(text);
  } else {
    // A pipe or a terminal cannot be replaced.
    if (statSync(out, { throwIfNoEntry: false })?.isFile() === false) writeFileSync(out, text);
    else {
      writeFileSync(`${out}.part`, text);
      renameSync(`${out}.part`, out);
    }
    process.stdout.write(`Written to ${out}.\n`);
  }
  const has = (...wanted: readonly string[]) => report.tasks.some(({ status }) => wanted.includes(status));
  if (report.broken.length > 0 || has("failed", "cancelled", "unfinished", "not started")) return EXIT.failed;
  return has("waiting", "reviewing") ? EXIT.waiting : EXIT.ok;
}

/** What was not run is not reported as if it had been. */
function stopped(file: string, options: BatchCommandOptions): number {
  const words = Object.entries(options).flatMap(([name, value]: [string, unknown]) => {
    const option = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    return value === true ? [option] : typeof value === "string" ? [option, shellWord(value)] : [];
  });
  const again = ["npx statecard batch", shellWord(file), ...words].join(" ");
  process.stderr.write(`Stopped, nothing is lost; no report was written. Go on with:  ${again}\n`);
  return EXIT.interrupted;
}

/** Ctrl-C: first an orderly end, then a quick one; a second Ctrl-C ends the process at once. */
class Signals {
  private readonly stopping = new AbortController();
  private readonly cutting = new AbortController();
  private readonly progress: BatchProgress;
  private readonly listenNoMore: () => void;
  private timer: NodeJS.Timeout | undefined;
  leftBehind = false;

  constructor(progress: BatchProgress) {
    this.progress = progress;
    this.listenNoMore = onStop(this.onSignal);
  }

  get stop(): AbortSignal {
    return this.stopping.signal;
  }

  get cut(): AbortSignal {
    return this.cutting.signal;
  }

  note(event: BatchEvent): void {
    const error = event.kind === "settled" ? event.settled.error : event.kind === "retry" ? event.error : null;
    if (error?.code === "TASK_TIMEOUT") this.leftBehind = true;
  }

  end(): void {
    clearTimeout(this.timer);
    this.listenNoMore();
  }

  private readonly onSignal = (): void => {
    if (this.stopping.signal.aborted) process.exit(EXIT.interrupted);
    this.progress.say(
      "Stopping: what runs ends with its step. Once more ends it at once; nothing is lost then either.",
    );
    this.stopping.abort(new Error("the batch was stopped"));
    this.timer = setTimeout(() => {
      this.leftBehind = true;
      this.cutting.abort(new Error("the batch was stopped"));
    }, GRACE_MS);
  };
}
