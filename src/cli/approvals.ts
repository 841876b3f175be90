import { shownRequest } from "../compile/iso-times.ts";
import { openApprovals, type OpenApproval } from "../compile/open-approvals.ts";
import type { OpenPlace } from "../compile/store.ts";
import { storeForReading } from "./database.ts";
import { EXIT } from "./exit.ts";
import { howToResume } from "./hints.ts";
import { sameTask, type CommonOptions } from "./options.ts";
import { detectTerminal, printable } from "./terminal.ts";
import { isExpired } from "../people/expiry.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { asksLine } from "./waiting.ts";

/** So many approvals are read at once. */
const PAGE = 100;

/** `statecard approvals`: every approval that is open, over all tasks; what expires first comes first. */
export async function approvalsCommand(options: CommonOptions): Promise<number> {
  const store = storeForReading(options.db);
  const open = await allApprovals(store);
  if (options.json) {
    const approvals = open.map(({ row, request }) => {
      const { id, count = 1, approvedBy = [], ...rest } = shownRequest(request);
      const { taskId, execution } = row;
      return { taskId, workflow: execution.workflow, requestId: id, ...rest, count, approvedBy };
    });
    process.stdout.write(`${JSON.stringify({ approvals }, null, 2)}\n`);
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

async function allApprovals(store: SqlStore): Promise<readonly OpenApproval[]> {
  const open: OpenApproval[] = [];
  for (let after: OpenPlace | undefined; ;) {
    const { approvals, next } = await openApprovals(store, { limit: PAGE, ...(after ? { after } : {}) });
    open.push(...approvals);
    if (!next) return open;
    after = next;
  }
}
