import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { usage } from "./exit.ts";
import type { LocalPostgres } from "./local-postgres.ts";
import type { KeeperSays } from "./postgres-keeper.ts";

const KEEPER = fileURLToPath(new URL("postgres-keeper.js", import.meta.url));

/**
 * A temporary PostgreSQL that lives as long as this process at most: another process keeps it, and puts it away as
 * soon as this one stops it or has ended, however that came about.
 *
 * @param signal aborted where it is no longer wanted before it is there.
 * @throws USAGE where it does not start; the signal's reason, when what was begun has been put away.
 */
export async function startKeptPostgres(signal: AbortSignal): Promise<LocalPostgres> {
  signal.throwIfAborted();
  // Detached, so that Ctrl-C does not reach it and what it runs.
  const keeper = fork(KEEPER, { detached: true, stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const ended = once(keeper, "exit");
  const letGo = () => void (keeper.connected && keeper.disconnect());
  const stop = async () => {
    letGo();
    await ended;
  };
  signal.addEventListener("abort", letGo);
  const [said] = (await Promise.race([once(keeper, "message"), ended])) as [KeeperSays | number | null];
  signal.removeEventListener("abort", letGo);
  const { url, refused = "PostgreSQL did not start, and its keeper ended without a word" }: KeeperSays = isAnswer(said)
    ? said
    : {};
  if (url !== undefined && !signal.aborted) return { url, stop };
  await stop();
  signal.throwIfAborted();
  throw usage(refused);
}

function isAnswer(said: unknown): said is KeeperSays {
  return typeof said === "object" && said !== null;
}
