// A process of its own around a temporary PostgreSQL: it puts it away when the process that started it lets go or
// ends, and be it by kill -9.
import { isWorkflowError } from "../errors.ts";
import { startLocalPostgres } from "./local-postgres.ts";

/** What the keeper says, once: where the database is, or why there is none. */
export interface KeeperSays {
  readonly url?: string;
  readonly refused?: string;
}

const gone = new AbortController();
const left = new Promise<void>((resolve) => gone.signal.addEventListener("abort", () => resolve()));
for (const event of ["disconnect", "SIGINT", "SIGTERM"]) process.on(event, () => gone.abort());
// It may have ended while this one was about to start.
if (!process.connected) gone.abort();

try {
  const postgres = await startLocalPostgres(gone.signal);
  say({ url: postgres.url });
  await left;
  await postgres.stop();
} catch (error) {
  if (!gone.signal.aborted) say({ refused: isWorkflowError(error) ? error.message : String(error) });
  else if (error !== gone.signal.reason) throw error;
}
if (process.connected) process.disconnect();

function say(said: KeeperSays): void {
  // Nobody may be left to hear it.
  process.send?.(said, undefined, undefined, () => {});
}
