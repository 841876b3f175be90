import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { chown, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { usage } from "./exit.ts";
import { shorten } from "../internal/json.ts";

const run = promisify(execFile);

/** A PostgreSQL server in a temporary folder. */
export interface LocalPostgres {
  readonly url: string;
  /** Ends the server and removes all that it holds. */
  stop(): Promise<void>;
}

/** Where distributions put the programs, by version, when they are not on the path. */
const PLACES = [
  "/usr/lib/postgresql",
  "/opt/homebrew/opt",
  "/usr/local/opt",
  "/usr/local",
  "/usr",
  "/Applications/Postgres.app/Contents/Versions",
];
const USER = "statecard";
const DATABASE = "postgres";
/** How long the server has to start, and to end in order, in seconds. */
const START_S = "60";
const STOP_S = "10";

/**
 * Starts a PostgreSQL server from the programs that are installed. It listens on a socket in its folder only, which
 * nobody else may enter. Where that fails, or is aborted, nothing is left of it.
 *
 * @throws USAGE where the programs are missing or will not start; the signal's reason.
 */
export async function startLocalPostgres(signal: AbortSignal): Promise<LocalPostgres> {
  signal.throwIfAborted();
  const programs = programsFolder();
  const account = await ownAccount();
  const folder = await mkdtemp(join(tmpdir(), "statecard-postgres-"));
  const data = join(folder, "data");
  const log = join(folder, "log");
  const options = { cwd: "/", ...account };
  const program = (name: string, ...args: readonly string[]) => run(join(programs, name), args, options);
  const end = (mode: "fast" | "immediate") => program("pg_ctl", "-D", data, "-w", "-t", STOP_S, "-m", mode, "stop");
  const remove = () => rm(folder, { recursive: true, force: true, maxRetries: 5 });
  try {
    if (account) await chown(folder, account.uid, account.gid);
    // A locale that is set and not installed would be refused.
    const making = program("initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync");
    const giveUp = () => void making.child.kill();
    signal.addEventListener("abort", giveUp);
    await making.finally(() => signal.removeEventListener("abort", giveUp));
    signal.throwIfAborted();
    const settings = `-c listen_addresses= -c unix_socket_permissions=0700 -k ${folder}`;
    await program("pg_ctl", "-D", data, "-w", "-t", START_S, "-l", log, "-o", settings, "start");
    signal.throwIfAborted();
  } catch (error) {
    const why = await reasonOf(error, log);
    // It may be about to start all the same.
    await end("immediate").catch(() => {});
    await remove();
    signal.throwIfAborted();
    throw usage(`PostgreSQL did not start (${why}); name a running server with --db postgres://…`);
  }
  return {
    url: `postgres:///${DATABASE}?host=${encodeURIComponent(folder)}&user=${USER}&sslmode=disable`,
    stop: async () => {
      // It may have ended by itself.
      await end("fast").catch(() => end("immediate").catch(() => {}));
      await remove();
    },
  };
}

/** What the server's log says, else what the program said. */
async function reasonOf(thrown: unknown, log: string): Promise<string> {
  const lines = await readFile(log, "utf8").catch(() => "");
  const [, fatal] = /\b(?:FATAL|PANIC): +(.*)/.exec(lines) ?? [];
  const said = thrown instanceof Error && "stderr" in thrown ? String(thrown.stderr).trim() : "";
  return shorten(fatal ?? (said || (thrown instanceof Error ? thrown.message : String(thrown))));
}

/** @throws USAGE. */
function programsFolder(): string {
  const onPath = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  const newestFirst = PLACES.flatMap(versionsIn);
  const found = [...onPath, ...newestFirst].find((folder) => existsSync(join(folder, "initdb")));
  if (found !== undefined) return found;
  throw usage(
    "PostgreSQL's programs (initdb, pg_ctl) are not installed here; install them (on Debian: apt-get install postgresql), or name a running server with --db postgres://…",
  );
}

/** The folders of programs in a place, the newest version first. */
function versionsIn(place: string): readonly string[] {
  if (!existsSync(place)) return [];
  const versions = readdirSync(place).filter((name) => /^(?:postgresql|pgsql)?[@-]?\d/.test(name));
  versions.sort((one, other) => other.localeCompare(one, "en", { numeric: true }));
  return versions.map((version) => join(place, version, "bin"));
}

/** Who the server runs as where it would refuse to: PostgreSQL does not start as root. */
async function ownAccount(): Promise<{ readonly uid: number; readonly gid: number } | null> {
  if (process.getuid?.() !== 0) return null;
  const number = async (flag: "-u" | "-g") => Number((await run("id", [flag, "postgres"])).stdout);
  try {
    return { uid: await number("-u"), gid: await number("-g") };
  } catch {
    throw usage(
      "PostgreSQL does not run as root, and there is no user postgres; name a running server with --db postgres://…",
    );
  }
}
