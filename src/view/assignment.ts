import type { Phase } from "../workflow/plan.ts";

const PLAN = (most: number) =>
  `Plan: answer with calls only, at most ${most}, each with an id. Where an argument comes from an earlier call's result, write {"$ref": "c1.path"} in its place. Say in expect what each result has to be like. What does not depend on something else runs at the same time.`;

/** What the next decision of a planning or looping step is for, as lines for the prompt. Pure. */
export function assignmentOf(phase: Phase | null): readonly string[] {
  if (phase === null) return [];
  const { kind, number, of, open } = phase;
  switch (kind) {
    case "plan": {
      const plan = PLAN(phase.maxCalls ?? of);
      if (number === 1) return [plan];
      const again = `The plan did not come true: ${listed(open)}. Plan again what is still missing (plan ${number} of ${of}); write values that you have, results of the earlier plan cannot be referred to.`;
      return [again, plan];
    }
    case "act": {
      const failed = open.length > 0 ? ` Not come true so far: ${listed(open)}.` : "";
      return [`Round ${number} of ${of}: call what you still need, or conclude with patch, next or reply.${failed}`];
    }
    case "conclude":
      return ["All calls came back as expected. Conclude now with patch, next or reply; no more calls."];
    case "close": {
      const left = open.length > 0 ? ` What stays open: ${listed(open)}.` : "";
      return [
        `The limit of ${of} rounds is reached; no more calls. Say truthfully what is known and what is open, then move on.${left}`,
      ];
    }
  }
}

// Ids, names of tools and words of ours only: what a result says has no place in an instruction.
function listed(open: Phase["open"]): string {
  return open
    .map(({ id, tool, status }) => `${id} (${tool}: ${status === "ok" ? "not as expected" : status})`)
    .join(", ");
}
