import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** A process, told apart from a later one that got the same number. */
export interface Owner {
  /** The machine; where a container has process numbers of its own, with their space: `host/4026532177`. */
  readonly host: string;
  readonly pid: number;
  /** The process's start in kernel ticks; 0 where the system does not tell. */
  readonly started: number;
}

/** This process. */
export const thisProcess: Owner = { host: machine(), pid: process.pid, started: startOf(process.pid) };

/** Whether an owner on this machine still runs; owners elsewhere count as running until their lease expires. */
export function isAlive(owner: Owner): boolean {
  if (owner.host !== thisProcess.host) return true;
  if (owner.pid === thisProcess.pid) return owner.started === thisProcess.started;
  try {
    process.kill(owner.pid, 0);
  } catch (error) {
    // EPERM: it runs, under another user.
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  return startOf(owner.pid) === owner.started;
}

/** The numbers of the machine itself, the same on every Linux. */
const MACHINE_SPACE = "4026531836";

/** Two containers can share a host name, and then number their processes alike. */
function machine(): string {
  try {
    const space = /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0];
    return space === undefined || space === MACHINE_SPACE ? hostname() : `${hostname()}/${space}`;
  } catch {
    return hostname();
  }
}

function startOf(pid: number): number {
  try {
    // Field 22 of /proc/PID/stat; the name in field 2 may hold spaces and parentheses.
    return Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ")[19]);
  } catch {
    return 0;
  }
}
