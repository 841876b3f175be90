import { defineWorkflow, field, loadRole, memoryTools, type Memories, type Step } from "statecard";
import { z } from "zod";
import { logDetective } from "../log-detective/workflow.ts";

type StepName = keyof typeof logDetective.steps;

/** The log detective with a role and a memory of its own. It has another name, since its tasks have another state. */
export function logAgentWith(memories: Memories) {
  const state = { ...logDetective.state, user: field(z.string().max(200)).describe("who asks").runtimeOnly() };
  const tools: typeof logDetective.tools = { ...logDetective.tools, ...memoryTools(memories) };
  const { looking, ...others } = logDetective.steps;
  const steps = {
    ...others,
    looking: { ...looking, tools: [...(looking.tools ?? []), "remember", "recall", "forget"] },
  };
  return defineWorkflow({
    ...logDetective,
    name: "log-agent",
    role: loadRole(new URL("./roles/log-agent.md", import.meta.url)),
    state,
    input: [...logDetective.input, "user"],
    tools,
    // What steps of the smaller state do, they do with the larger one too; the type of a step is not that lenient.
    steps: steps as Readonly<Record<StepName, Step<typeof state, StepName, typeof tools>>>,
  });
}
