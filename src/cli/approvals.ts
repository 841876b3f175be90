import { describeRequests, type WaitingRequest } from "../compile/describe.ts";
import type { TaskRow, TaskStore } from "../compile/store.ts";
import { storeForReading } from "./database.ts";
import { EXIT } from "./exit.ts";
import { howToResume } from "./hints.ts";
import { sameTask, type CommonOptions } from "./options.ts";
import { detectTerminal, printable } from "./terminal.ts";
import { isExpired } from "../people/expiry.ts";
import { asksLine } from "./waiting.ts";

/** `statecard approvals`: every approval that is open, over all tasks; what expires first comes first. */
export async function approvalsCommand(options: CommonOptions): Promise<number> {
  const store = storeForReading(options.db);
  const open = await openApprovals(store);
  if (options.json) {
    const json = open.map(({ row, request: { id, count = 1, approvedBy = [], ...rest } }) => ({
      taskId: row.taskId,
      workflow: row.execution.workflow,
      requestId: id,
      ...rest,
      count,
      approvedBy,
    }));
    process.stdout.write(`${JSON.stringify(json, null, 2)}\n`);
    return EXIT.ok;
  }
  const terminal = detectTerminal();
  const now = Date.now();
  const lines = open.flatMap(({ row, request }) => {
    const { taskId, execution, waiting } = row;
    const answering = { request, several: waiting.length > 1 };
    const late = isExpired(request, now);
    return [
      `${printable(taskId)}  ${execution.workflow} v${execution.version}  ${asksLine(request, now)}`,
      `  ${late ? "too late, go on with" : "approve with"}:  ${howToResume(terminal, taskId, sameTask(options), late ? undefined : answering)}`,
    ];
  });
  process.stdout.write(`${lines.join("\n") || "No approval is open."}\n`);
  return EXIT.ok;
}

interface OpenApproval {
  readonly row: TaskRow;
  readonly request: WaitingRequest;
}

async function openApprovals(store: TaskStore): Promise<readonly OpenApproval[]> {
  const rows = await store.tasks();
  const children = new Set(rows.flatMap(askingChildren));
  const open: OpenApproval[] = [];
  for (const row of rows.filter(({ taskId }) => !children.has(taskId))) {
    const approvals = row.waiting.filter(({ kind }) => kind !== "question");
    for (const request of await describeRequests(store, row.taskId, approvals)) open.push({ row, request });
  }
  const expires = ({ request }: OpenApproval) => request.expiresAt ?? Infinity;
  // Not a difference: that of two that never expire is no number.
  return open.toSorted((a, b) => (expires(a) < expires(b) ? -1 : expires(a) > expires(b) ? 1 : 0));
}

/** Child workflows whose requests a task passes on: they are answered at their parent. */
function askingChildren({ taskId, execution, waiting }: TaskRow): readonly string[] {
  return waiting.flatMap(({ id }) => {
    const [, run] = /^w(\d+\.\d+)\//.exec(id) ?? [];
    return run === undefined ? [] : [`${taskId}/${execution.step}/${run}`];
  });
}
