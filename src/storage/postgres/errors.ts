import { WorkflowError } from "../../errors.ts";

// https://www.postgresql.org/docs/current/errcodes-appendix.html
const LOCK_NOT_AVAILABLE = "55P03";
const DEADLOCK = "40P01";
const PERMISSION_DENIED = "42501";
const READ_ONLY = "25006";
const DISK_FULL = "53100";
const NO_SUCH_DATABASE = "3D000";
const REFUSED_LOGIN = new Set(["28P01", "28000"]);
/** Too many connections, out of memory, shutting down, starting up. */
const SERVER_CANNOT_NOW = new Set(["53300", "53200", "57P01", "57P02", "57P03", "25P03"]);
const NO_CONNECTION = new Set(
  "ECONNREFUSED ECONNRESET ENOTFOUND EAI_AGAIN ETIMEDOUT EHOSTUNREACH ENETUNREACH EPIPE ENOENT EACCES 08000 08001 08003 08004 08006".split(
    " ",
  ),
);
// What `pg` says without a code.
const LOST = /Connection terminated|connection timeout|timeout exceeded when trying to connect|not queryable|SSL/i;

/**
 * Says in plain words what is wrong with the database; everything else is passed on.
 *
 * @param where user, host and database; never the password.
 */
export function databaseError(where: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof WorkflowError) return error;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  const raise = (
    kind: "DATABASE_LOCKED" | "DATABASE_READ_ONLY" | "DATABASE_UNAVAILABLE",
    says: string,
    again = false,
  ) => new WorkflowError(kind, says, { cause: error, details: { database: where, code }, retryable: again });
  if (code === LOCK_NOT_AVAILABLE || code === DEADLOCK) {
    return raise("DATABASE_LOCKED", `another process holds a lock in ${where} for too long; try again later`, true);
  }
  if (code === PERMISSION_DENIED) {
    return raise(
      "DATABASE_READ_ONLY",
      `the user of ${where} lacks a right there (${error.message}); grant it to read, write and create tables`,
    );
  }
  if (code === READ_ONLY)
    return raise("DATABASE_READ_ONLY", `${where} takes no writes, as a standby does; connect to the primary server`);
  if (code === DISK_FULL)
    return raise(
      "DATABASE_UNAVAILABLE",
      `the disk of ${where} is full; the task is as it was before this write; free some space`,
    );
  if (code === NO_SUCH_DATABASE)
    return raise("DATABASE_UNAVAILABLE", `${where} does not exist; create it (createdb), or name another database`);
  if (REFUSED_LOGIN.has(code) || error.message.startsWith("SASL"))
    return raise(
      "DATABASE_UNAVAILABLE",
      `${where} refused the login; check user and password in the connection string`,
    );
  if (SERVER_CANNOT_NOW.has(code) || NO_CONNECTION.has(code) || LOST.test(error.message)) {
    const said = code || error.message;
    return raise(
      "DATABASE_UNAVAILABLE",
      `${where} cannot be reached (${said}); check that the server runs and the connection string names it`,
      true,
    );
  }
  return error;
}
