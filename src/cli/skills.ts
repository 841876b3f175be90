import { relative } from "node:path";
import { adviseOnSkills } from "../skills/advise.ts";
import { loadSkills } from "../skills/load.ts";
import type { SkillProblem } from "../skills/skill.ts";
import { EXIT, usage } from "./exit.ts";
import type { CommonOptions } from "./options.ts";
import { count, printable } from "./terminal.ts";

/** `statecard skills check`: what is wrong with the skills in folders, and what could be better. */
export function skillsCommand(folders: readonly string[], options: CommonOptions): number {
  const loaded = loadSkills(folders);
  const missing = loaded.problems.find(({ code }) => code === "MISSING_FOLDER");
  if (missing) throw usage(`there is no folder ${missing.file}`);
  if (loaded.skills.length === 0 && loaded.problems.length === 0) {
    throw usage(`there is no SKILL.md in ${folders.join(", ")}`);
  }
  const problems = adviseOnSkills(loaded).map((problem) => ({ ...problem, file: fromHere(problem.file) }));
  const numbers = {
    loaded: loaded.skills.length,
    broken: new Set(problems.filter(isError).map(({ file }) => file)).size,
    warnings: problems.filter(({ severity }) => severity === "warning").length,
    advice: problems.filter(({ severity }) => severity === "advice").length,
  };
  if (options.json)
    process.stdout.write(`${JSON.stringify({ ok: numbers.broken === 0, ...numbers, problems }, null, 2)}\n`);
  else process.stdout.write(`${[...problems.map(line), summary(numbers)].map(printable).join("\n")}\n`);
  return numbers.broken === 0 ? EXIT.ok : EXIT.refused;
}

const isError = ({ severity }: SkillProblem) => severity === "error";

function fromHere(file: string): string {
  const path = relative(process.cwd(), file);
  return path.startsWith("..") ? file : path || ".";
}

function line({ file, line, severity, code, message }: SkillProblem): string {
  return `${file}:${line} ${severity} ${code}: ${message}`;
}

function summary(numbers: Readonly<Record<"loaded" | "broken" | "warnings" | "advice", number>>): string {
  const { loaded, broken, warnings, advice } = numbers;
  return `${count(loaded)} ${loaded === 1 ? "skill loads" : "skills load"}, ${count(broken)} left out; warnings: ${count(warnings)}, advice: ${count(advice)}`;
}
