import type { LoadedSkills } from "./load.ts";
import type { Skill, SkillProblem } from "./skill.ts";
import { stemsOf } from "./words.ts";

/** Two skills may be confused that share this part of the words of the one that says less, … */
const CONFUSABLE_SHARE = 0.45;
/** … and at least so many. */
const CONFUSABLE_WORDS = 3;
const SHOWN_WORDS = 8;

/** Words by which people draw a line. */
const LIMITS = /\b(?:not|never|don['’]t|doesn['’]t|isn['’]t|only|except|unless|instead|rather than|avoid|skip)\b/i;

/**
 * What could be better in how skills say what they are for, as advice after the problems: two that can be
 * confused with one another, since they use the same words (stems, without those that say nothing); and those
 * that do not say when not to use them. Pure.
 */
export function adviseOnSkills({ skills, problems }: LoadedSkills): readonly SkillProblem[] {
  return [...problems, ...confusable(skills), ...skills.filter((skill) => !saysLimits(skill)).map(withoutLimits)];
}

function confusable(skills: readonly Skill[]): readonly SkillProblem[] {
  const known = skills.map((skill) => ({ skill, stems: stemsOf(sayingsOf(skill)) }));
  return known.flatMap(({ skill, stems }, position) =>
    known.slice(0, position).flatMap((other) => {
      const shared = [...stems].flatMap(([stem, word]) => (other.stems.has(stem) ? [word] : []));
      const share = shared.length / Math.max(1, Math.min(stems.size, other.stems.size));
      if (share < CONFUSABLE_SHARE || shared.length < CONFUSABLE_WORDS) return [];
      const said = shared.slice(0, SHOWN_WORDS).join(", ") + (shared.length > SHOWN_WORDS ? ", …" : "");
      const message = `can be confused with ${other.skill.name}: ${Math.round(100 * share)} % of the words of the one that says less are in both (${said}); say in each when the other is right`;
      return [advice(skill, "CONFUSABLE", message)];
    }),
  );
}

function sayingsOf({ name, description, whenToUse }: Skill): string {
  return [name, description, whenToUse ?? ""].join(" ");
}

function saysLimits({ description, whenToUse, whenNotToUse }: Skill): boolean {
  return whenNotToUse !== null || LIMITS.test(`${description} ${whenToUse ?? ""}`);
}

function withoutLimits(skill: Skill): SkillProblem {
  return advice(
    skill,
    "NO_LIMITS",
    "does not say when not to use it; say so in the description, or in when_not_to_use",
  );
}

function advice(skill: Skill, code: SkillProblem["code"], message: string): SkillProblem {
  return { file: skill.file, line: 1, severity: "advice", code, message: `${skill.name} ${message}` };
}
