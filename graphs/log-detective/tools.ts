import { fileURLToPath } from "node:url";
import { loadSkills, skillTools } from "statecard";

const { skills } = loadSkills(fileURLToPath(new URL("./skills/", import.meta.url)));
const { readSkill } = skillTools(skills, { tools: [], trusted: true });

/** The four skills as tools, and what gives their instructions. A skill that is missing or broken is an error here. */
export const tools = {
  ...skillTools(skills, {
    tools: ["read-log-file", "query-issue-kb", "write-analysis-snapshot", "generate-report"],
    reading: false,
    // The issues are our own; what a log says is not.
    declarations: { "query-issue-kb": { trusted: true } },
  }),
  readSkill,
};
