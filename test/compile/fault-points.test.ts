import { INTERRUPT } from "@langchain/langgraph";
import { answer, compile, defineTool, defineWorkflow, describeTask, field, isWorkflowError } from "statecard";
import { FAULT_POINTS, onFaultPoint, type FaultPoint } from "statecard/testing";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { onBothDialects } from "../support/stores.ts";

// Here a fault throws where a kill would end the process: the same code runs afterwards, in a fresh graph
// on a fresh connection. The benchmark `crash` does it with real processes.

interface World {
  readonly mails: string[];
  readonly clock: { time: number; now(): number };
}

function workflowIn(world: World, kind: "blind" | "reconciles" | "idempotent") {
  const sendMail = defineTool({
    description: "Sends a mail.",
    parameters: z.object({ to: z.string() }),
    effect: "write",
    idempotent: kind === "idempotent",
    ...(kind === "reconciles"
      ? {
          reconcile: ({ to }: { to: string }) =>
            world.mails.includes(to) ? { happened: true as const, value: "sent" } : { happened: false as const },
        }
      : {}),
    run: ({ to }) => {
      if (kind !== "idempotent" || !world.mails.includes(to)) world.mails.push(to);
      return "sent";
    },
  });
  return defineWorkflow({
    name: "mail",
    version: 1,
    state: { name: field(z.string()), sent: field(z.array(z.string())).appendOnly() },
    tools: { sendMail },
    initial: "asking",
    steps: {
      asking: {
        to: ["asking", "sending"],
        run: (_state, { observation }) =>
          observation?.kind === "answer"
            ? { patch: { name: observation.text }, next: "sending" }
            : { ask: "Who gets the mail?" },
      },
      sending: {
        tools: ["sendMail"],
        approve: ["sendMail"],
        to: ["copying"],
        run: ({ name }) => ({
          calls: [{ tool: "sendMail", args: { to: `${name}` } }],
          patch: { sent: ["one"] },
          next: "copying",
        }),
      },
      copying: {
        tools: ["sendMail"],
        to: ["done"],
        run: ({ name }) => ({
          calls: [{ tool: "sendMail", args: { to: `copy-${name}` } }],
          patch: { sent: ["two"] },
          next: "done",
        }),
      },
      done: { final: true },
    },
  });
}

class Killed extends Error {}

afterEach(() => onFaultPoint(null));

/** Lets the n-th time that a point is reached be the end. */
function killAt(point: FaultPoint, nth: number): { readonly hit: boolean } {
  let left = nth;
  const watch = { hit: false };
  onFaultPoint((reached) => {
    if (reached !== point || watch.hit || --left > 0) return;
    watch.hit = true;
    throw new Killed(point);
  });
  return watch;
}

onBothDialects((dialect) => {
  // What differs between the dialects is where rows are kept; the rest of the matrix needs only one.
  const isFile = dialect.place.length === 1;
  const kinds = isFile ? (["blind", "reconciles", "idempotent"] as const) : (["blind"] as const);
  const times = isFile ? [1, 2, 3] : [1, 2];
  describe.each(kinds)("a call that is %s", (kind) => {
    test.each(FAULT_POINTS.flatMap((point) => times.map((nth) => ({ point, nth }))))(
      "K10: nothing is lost and nothing done twice by an end at $point ($nth)",
      async ({ point, nth }) => {
        const world: World = { mails: [], clock: { time: 1_000_000, now: () => world.clock.time } };
        const task = `${kind}-${point}-${nth}`;
        const store = dialect.open(world.clock);
        try {
          const graph = () => compile(workflowIn(world, kind), { store, clock: world.clock });
          const watch = killAt(point, nth);
          const config = { configurable: { thread_id: task } };
          let asked = 0;
          let input: unknown = { message: "write to Ada" };
          for (let turn = 0; turn < 20; turn++) {
            const result = await graph()
              .invoke(input as never, config)
              .catch((error: unknown) => {
                if (!(error instanceof Killed) && !isWorkflowError(error, "STALE_RESUME")) throw error;
                // Nobody waits for what an ended process had begun.
                world.clock.time += 60_000;
                return null;
              });
            const standing = await describeTask(store, task).catch(() => null);
            if (standing?.status === "completed") break;
            const open = standing?.waiting?.[0];
            const paused =
              result ??
              (open
                ? await graph()
                    .invoke(null, config)
                    .catch(() => null)
                : null);
            if (!standing) input = { message: "write to Ada" };
            else if (!open || !paused?.[INTERRUPT]) input = null;
            else if (open.kind === "question") input = answer(paused, "ada");
            else if (open.kind === "approval") input = answer(paused, "approve");
            else {
              asked++;
              const to = paused[INTERRUPT]?.[0]?.value?.requests[0]?.args?.to as string;
              input = answer(paused, world.mails.includes(to) ? "approve" : "reject");
            }
          }
          const { values } = await graph().getState(config);
          expect(values).toMatchObject({
            name: "ada",
            sent: ["one", "two"],
            execution: { status: "completed", decisions: 4 },
          });
          expect(world.mails).toEqual(["ada", "copy-ada"]);
          const couldBeUnknown = watch.hit && (point === "after-intent" || point === "after-call") && kind === "blind";
          expect(asked).toBe(couldBeUnknown ? 1 : 0);
        } finally {
          onFaultPoint(null);
          await store.close();
        }
      },
      // A call that nobody remembers is waited for: without this, a broken journal would take its time to show.
      20_000,
    );
  });
});
