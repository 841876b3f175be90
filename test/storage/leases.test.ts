import { describe, expect, test } from "vitest";
import { hostname } from "node:os";
import { StoredTask } from "../../src/testing/stored-task.ts";
import { isAlive, thisProcess } from "../../src/storage/owner.ts";
import { StoreProcess } from "../support/processes.ts";
import { onBothDialects } from "../support/stores.ts";

const error = (code: string) => expect.objectContaining({ code }) as Error;
const LEASE_MS = 30_000;

/** A clock that stands still until it is set. */
class StandingClock {
  time = 1_800_000_000_000;
  now = () => this.time;
}

onBothDialects((dialect) => {
  test("the lease of a process on this machine that was killed is taken over at once", async () => {
    const owner = await StoreProcess.start("hold", "killed", dialect.place);
    await owner.go();
    const store = dialect.open();
    const busy = store.acquire("killed");
    await expect(busy).rejects.toEqual(error("TASK_BUSY"));
    await expect(busy).rejects.toMatchObject({ retryable: true, details: { host: thisProcess.host } });
    const [before] = await dialect.query("select token from statecard_leases where task_id = 'killed'");
    await owner.kill();
    const lease = await store.acquire("killed");
    expect(lease.token).toBe(Number(before?.token) + 1);
  });

  test("the lease of a process elsewhere holds until it expires, dead or not", async () => {
    const clock = new StandingClock();
    const store = dialect.open(clock);
    await store.acquire("remote");
    await dialect.query("update statecard_leases set host = 'elsewhere', pid = 1 where task_id = 'remote'");
    clock.time += LEASE_MS;
    await expect(store.acquire("remote")).rejects.toMatchObject({ code: "TASK_BUSY", details: { host: "elsewhere" } });
    clock.time += 1;
    await store.acquire("remote");
  });

  test("a lease left by an earlier process with the same number is taken over at once", async () => {
    const store = dialect.open();
    await store.acquire("reused");
    await expect(store.acquire("reused")).rejects.toEqual(error("TASK_BUSY"));
    await dialect.query("update statecard_leases set started = started + 1 where task_id = 'reused'");
    await store.acquire("reused");
  });

  test("whoever only looks is told who runs a task, and since when", async () => {
    const clock = new StandingClock();
    const store = dialect.open(clock);
    expect(await store.owner("looked at")).toBeNull();
    const { host, pid } = thisProcess;
    for (let times = 0; times < 2; times++) {
      const since = (clock.time += LEASE_MS);
      const lease = await store.acquire("looked at");
      clock.time += LEASE_MS;
      await store.renew(lease);
      clock.time += 1;
      expect(await store.owner("looked at")).toEqual({ host, pid, since });
      await store.release(lease);
      expect(await store.owner("looked at")).toBeNull();
    }
  });

  test("a renewed lease holds for its whole time again", async () => {
    const clock = new StandingClock();
    const store = dialect.open(clock);
    const lease = await store.acquire("renewed");
    clock.time += LEASE_MS;
    await store.renew(lease);
    clock.time += LEASE_MS;
    await expect(store.acquire("renewed")).rejects.toEqual(error("TASK_BUSY"));
    clock.time += 1;
    await store.acquire("renewed");
  });

  test("an owner that was only slow can write nothing once its lease has been taken over", async () => {
    const clock = new StandingClock();
    const [store, other] = [dialect.open(clock), dialect.open(clock)];
    const slow = await StoredTask.start(store, "slow");
    await slow.ask("How urgent is it?");
    const before = await other.head("slow");
    clock.time += LEASE_MS + 1;
    const lease = await other.acquire("slow");
    const writes = [
      () => slow.decide({ pending: null }),
      () => slow.write("__interrupt__", "?"),
      () => slow.write("__error__", "?"),
      () => slow.inner("ask:1"),
      () => store.closing(slow.lease, []),
      () => store.fork(slow.lease, slow.head),
    ];
    for (const write of writes) await expect(write()).rejects.toEqual(error("STALE_WRITE"));
    // These say nothing, and change nothing.
    await store.running(slow.lease);
    await store.renew(slow.lease);
    await store.release(slow.lease);
    await expect(store.acquire("slow")).rejects.toEqual(error("TASK_BUSY"));
    const [row] = await dialect.query("select token, closing, expires from statecard_leases where task_id = 'slow'");
    expect([Number(row?.token), Number(row?.closing), Number(row?.expires)]).toEqual([
      lease.token,
      1,
      clock.time + LEASE_MS,
    ]);
    expect(await other.head("slow")).toEqual(before);
    expect((await slow.stored())?.pendingWrites).toEqual([]);
  });

  test("an owner whose lease ran out, and that nobody has replaced, goes on", async () => {
    const clock = new StandingClock();
    const task = await StoredTask.start(dialect.open(clock), "late");
    clock.time += LEASE_MS * 10;
    await task.decide();
  });

  test("the last owner of a deleted task does not hold the new task of that name", async () => {
    const store = dialect.open();
    const former = await StoredTask.start(store, "again");
    await store.deleteTask("again");
    const next = await StoredTask.start(store, "again");
    expect(next.lease.token).not.toBe(former.lease.token);
    await expect(former.inner("ask:1")).rejects.toEqual(error("STALE_WRITE"));
  });
});

describe("a process", () => {
  test("is told from another that got its number", () => {
    expect(isAlive(thisProcess)).toBe(true);
    expect(isAlive({ ...thisProcess, started: thisProcess.started - 1 })).toBe(false);
  });

  test("elsewhere counts as alive: nobody here can know", () => {
    expect(isAlive({ host: "elsewhere", pid: 1, started: 1 })).toBe(true);
  });

  test("in a container is told from one of the same number on the machine, by more than the host's name", () => {
    expect(thisProcess.host).toMatch(new RegExp(`^${hostname()}(/\\d+)?$`));
  });
});
