import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { WorkflowError } from "../errors.ts";
import { shorten } from "../internal/json.ts";

const run = promisify(execFile);

/** A PostgreSQL server of this process's own, in a temporary folder. */
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

/**
 * Starts a PostgreSQL server from the programs that are installed. It listens on a socket in its folder only, which
 * nobody else may enter.
 *
 * @throws USAGE where the programs are missing or will not start.
 */
export async function startLocalPostgres(): Promise<LocalPostgres> {
  const programs = programsFolder();
  const account = await ownAccount();
  const folder = await mkdtemp(join(tmpdir(), "statecard-postgres-"));
  const data = join(folder, "data");
  const options = { cwd: "/", ...account };
  const program = (name: string, ...args: readonly string[]) => run(join(programs, name), args, options);
  try {
    if (account) await chown(folder, account.uid, account.gid);
    await program("initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync");
    const settings = `-c listen_addresses= -c unix_socket_permissions=0700 -k ${folder}`;
    await program("pg_ctl", "-D", data, "-w", "-l", join(folder, "log"), "-o", settings, "start");
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    const said = shorten(error instanceof Error ? error.message : String(error));
    throw new WorkflowError(
      "USAGE",
      `PostgreSQL did not start (${said}); name a running server with --db postgres://…`,
    );
  }
  return {
    url: `postgres:///${DATABASE}?host=${encodeURIComponent(folder)}&user=${USER}`,
    stop: async () => {
      await program("pg_ctl", "-D", data, "-w", "-m", "fast", "stop");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** @throws USAGE. */
function programsFolder(): string {
  const onPath = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  const newestFirst = PLACES.flatMap(versionsIn);
  const found = [...onPath, ...newestFirst].find((folder) => existsSync(join(folder, "initdb")));
  if (found !== undefined) return found;
  throw new WorkflowError(
    "USAGE",
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
    throw new WorkflowError(
      "USAGE",
      "PostgreSQL does not run as root, and there is no user postgres; name a running server with --db postgres://…",
    );
  }
}
