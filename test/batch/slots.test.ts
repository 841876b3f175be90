import { sqliteStore } from "statecard";
import { expect, onTestFinished, test, vi } from "vitest";
import { Slots, type Limit, type Slot } from "../../src/batch/queue/slots.ts";

function openSlots(limit: Limit) {
  const slots = new Slots(sqliteStore(":memory:"));
  onTestFinished(() => slots.close());
  const take = () => slots.take([{ name: "@acme", limit }]);
  const hasPlace = async () => {
    const taken = await take();
    if ("againInMs" in taken) return false;
    taken.cancel();
    return true;
  };
  return { take: async () => (await take()) as Slot, hasPlace };
}

test("a rate holds also where more may run at once than may begin", async () => {
  const { take, hasPlace } = openSlots({ concurrency: 5, rate: { max: 2, perMs: 3_600_000 } });
  for (const slot of [await take(), await take()]) slot.release();
  expect(await hasPlace()).toBe(false);
});

test("a task that runs for longer than the rate's time takes no further begin away", async () => {
  const { take, hasPlace } = openSlots({ concurrency: null, rate: { max: 1, perMs: 20 } });
  await take();
  await vi.waitFor(async () => expect(await hasPlace()).toBe(true));
});

test("what runs at once is limited beside the rate", async () => {
  const { take, hasPlace } = openSlots({ concurrency: 1, rate: { max: 9, perMs: 20 } });
  const slot = await take();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await hasPlace()).toBe(false);
  slot.release();
  await vi.waitFor(async () => expect(await hasPlace()).toBe(true));
});

test("a task that was not run after all has counted for nothing", async () => {
  const { take, hasPlace } = openSlots({ concurrency: null, rate: { max: 1, perMs: 3_600_000 } });
  (await take()).cancel();
  await vi.waitFor(async () => expect(await hasPlace()).toBe(true));
});
