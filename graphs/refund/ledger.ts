import { appendFile, mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";

/** A payment that was made. */
export interface Payment {
  /** The call's idempotency key: the same for every attempt at one call, and for no other. */
  readonly key: string;
  readonly taskId: string;
  readonly order: string;
  readonly amount: number;
  readonly receipt: string;
}

/** The bank of this example: payments can be added and looked up, nothing else. */
export interface Ledger {
  add(payment: Payment): Promise<void>;
  /**
   * @returns all payments, and whether each of them could be read: a process that was killed while it
   * wrote leaves half a line.
   */
  payments(): Promise<{ readonly all: readonly Payment[]; readonly complete: boolean }>;
}

export const LEDGER_FILE = ".statecard/refunds.jsonl";

/** The ledger among a task's clients: one of the caller's, or a file of JSON lines that only grows. */
export function ledgerOf({ ledger = LEDGER_FILE }: Readonly<Record<string, unknown>>): Ledger {
  if (typeof ledger === "string") return fileLedger(ledger);
  if (typeof ledger === "object" && ledger !== null && "add" in ledger && "payments" in ledger) return ledger as Ledger;
  throw new TypeError("clients.ledger is neither the path of a file nor a ledger with add and payments");
}

function fileLedger(file: string): Ledger {
  return {
    async add(payment) {
      await mkdir(dirname(file), { recursive: true });
      // Half a line of an earlier crash must not spoil this one.
      const { complete } = await this.payments();
      await appendFile(file, `${complete ? "" : "\n"}${JSON.stringify(payment)}\n`);
    },
    async payments() {
      const lines = (await readFile(file, "utf8").catch(emptyWhereMissing)).split("\n").filter((line) => line !== "");
      const all = lines.flatMap(readPayment);
      return { all, complete: all.length === lines.length };
    },
  };
}

function emptyWhereMissing(error: NodeJS.ErrnoException): string {
  if (error.code !== "ENOENT") throw error;
  return "";
}

function readPayment(line: string): readonly Payment[] {
  try {
    return [JSON.parse(line) as Payment];
  } catch {
    return [];
  }
}

/** A ledger that ends with the process, for tests. */
export function memoryLedger(): Ledger & { readonly all: Payment[] } {
  const all: Payment[] = [];
  return {
    all,
    async add(payment) {
      all.push(payment);
    },
    async payments() {
      return { all, complete: true };
    },
  };
}
