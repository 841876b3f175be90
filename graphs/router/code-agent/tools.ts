import { fileURLToPath } from "node:url";
import { loadSkills, skillTools, type CallResult } from "statecard";
import type { Shown } from "./project.ts";

const { skills } = loadSkills(fileURLToPath(new URL("./skills/", import.meta.url)));

/** The two skills as tools, and what gives their instructions: those of this agent and no others. */
export const tools = {
  ...skillTools(skills, { tools: ["search-code", "read-file"], reading: false }),
  readSkill: skillTools(skills, { tools: [], trusted: true }).readSkill,
};

const MAX_LINES = 60;
const MAX_ASKED = 12;

type Texts = readonly string[] | null;

/** What code keeps of what was shown, so that no place depends on a model's notes; the newest stays. */
export function keepShown(
  { status, value }: CallResult,
  { lines, asked }: { readonly lines: Texts; readonly asked: Texts },
) {
  if (status !== "ok") return {};
  const { output } = value as { readonly output: Shown };
  const shown = output.lines.map(({ place, text }) => `${place} ${text}`);
  return {
    lines: [...(lines ?? []).filter((line) => !shown.includes(line)), ...shown].slice(-MAX_LINES),
    asked: [...new Set([...(asked ?? []), `${output.asked}: ${output.found} found`])].slice(-MAX_ASKED),
  };
}
