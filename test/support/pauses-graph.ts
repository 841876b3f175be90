import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { compile, defineTool, defineWorkflow, field, openStore } from "statecard";
import { z } from "zod";

// Pauses that no example has. The tests of the LangGraph server serve it and give it the calls to make.

const callSchema = z.object({
  name: z.string(),
  /**
   * `asks`: a person has to approve it; `expires`: within a second. `waits`: until there is a file of its name.
   * `kills`: its process dies of it, the first time.
   */
  how: z.enum(["asks", "expires", "waits", "kills"]),
});

/** A call that the workflow is to make. */
export type PauseCall = z.infer<typeof callSchema>;

/** Each line is the name of a call whose body ran. */
export const RAN_FILE = "ran.log";

const work = defineTool({
  description: "Works.",
  parameters: callSchema,
  effect: "write",
  approve: ({ how }) => (how === "expires" ? { expiresAfterMs: 1000 } : how === "asks"),
  timeoutMs: 60_000,
  async run({ name, how }) {
    if (how === "waits") while (!existsSync(name)) await sleep(20);
    const ran = existsSync(RAN_FILE) ? readFileSync(RAN_FILE, "utf8").split("\n") : [];
    appendFileSync(RAN_FILE, `${name}\n`);
    if (how === "kills" && !ran.includes(name)) process.kill(process.pid, "SIGKILL");
    return name;
  },
});

export const pauses = defineWorkflow({
  name: "pauses",
  version: 1,
  state: {
    calls: field(z.array(callSchema)),
    outcomes: field(z.array(z.string())).runtimeOnly(),
  },
  input: ["calls"],
  tools: { work },
  initial: "working",
  steps: {
    working: {
      tools: ["work"],
      to: ["working", "asking", "done"],
      run({ calls }, { observation }) {
        if (calls === null) return { next: "asking" };
        if (observation?.kind !== "results") return { calls: calls.map((args) => ({ tool: "work" as const, args })) };
        return { patch: { outcomes: observation.results.map(({ status }) => status) }, next: "done" };
      },
    },
    asking: {
      to: ["asking", "late", "done"],
      deadline: { afterMs: 1000, to: "late" },
      run: (_state, { observation }) => (observation?.kind === "answer" ? { next: "done" } : { ask: "Now?" }),
    },
    late: { final: true },
    done: { final: true },
  },
});

export const graph = compile(pauses, { store: openStore() });
