import type { EmbeddingsInterface } from "@langchain/core/embeddings";
import { wordIndex } from "../internal/word-index.ts";
import { skillsOf, type Skill, type SkillSource } from "./skill.ts";
import { wordsOf } from "./words.ts";

export interface ChooseOptions {
  /** The names of those that may be used now, as the step has it; all unless set. */
  readonly allowed?: readonly string[];
  /** How many are chosen where there are many; 5 unless set. */
  readonly limit?: number;
  /** Ranks by meaning as well as by words. */
  readonly embeddings?: EmbeddingsInterface;
}

/** So many are shown without a choice. */
export const FEW_SKILLS = 10;
const DEFAULT_LIMIT = 5;

// Tuned on one half of the requests in bench/skills-requests.ts; `npm run bench -- skills` reports the other.
const WEIGHTS = { name: 3, usage: 3, headings: 1, body: 2 };
/** The beginning of instructions tells what they are for. */
const INDEXED_CHARACTERS = 4000;

/**
 * Chooses the skills that may help with a request. First those go that may not be used now; up to ten of the
 * rest are all given. Of more, the best few by their words are: name, description, when to use, headings and
 * instructions (BM25 with weights); fewer, where fewer share a word with it. With embeddings, ranks by meaning
 * count as much.
 *
 * @example
 * const chosen = await chooseSkills(skills, "why is the checkout slow?", { allowed: ["profiling", "sql-tuning"] });
 */
export async function chooseSkills(
  source: SkillSource,
  request: string,
  { allowed, limit = DEFAULT_LIMIT, embeddings }: ChooseOptions = {},
): Promise<readonly Skill[]> {
  const skills = skillsOf(source);
  const open = allowed ? skills.filter(({ name }) => allowed.includes(name)) : skills;
  if (open.length <= FEW_SKILLS) return open;
  const byWords = rankByWords(skills, open, request);
  const ranked = embeddings ? merge([byWords, await rankByMeaning(open, request, embeddings)]) : byWords;
  return ranked.slice(0, limit);
}

// Skills stay the same objects until their files change.
const indexes = new WeakMap<readonly Skill[], ReturnType<typeof wordIndex>>();

function rankByWords(skills: readonly Skill[], open: readonly Skill[], request: string): readonly Skill[] {
  let index = indexes.get(skills);
  if (!index) {
    index = wordIndex(skills, { weights: WEIGHTS, partOf: fieldOf, wordsOf });
    indexes.set(skills, index);
  }
  const mayBeUsed = new Set(open);
  const found = index(request).flatMap((position) => skills[position] ?? []);
  return found.filter((skill) => mayBeUsed.has(skill));
}

function fieldOf(skill: Skill, field: string): string {
  switch (field) {
    case "name":
      return skill.name;
    case "usage":
      // One field: alone, `when_to_use` would count for less the fewer skills have it.
      return `${skill.description}\n${skill.whenToUse ?? ""}`;
    case "headings":
      return headingsOf(skill.body).join("\n");
    default:
      return skill.body.slice(0, INDEXED_CHARACTERS);
  }
}

/** The lines that begin with #, those inside code left out. */
function headingsOf(body: string): readonly string[] {
  const prose = body.replaceAll(/^(`{3,}|~{3,})[^\n]*\n[\s\S]*?^\1/gm, "");
  return prose.match(/^#{1,6} .+$/gm) ?? [];
}

/** What a skill is embedded as. */
function summaryOf({ name, description, whenToUse }: Skill): string {
  return [name, description, whenToUse].filter(Boolean).join("\n");
}

const vectors = new WeakMap<EmbeddingsInterface, Map<string, number[]>>();

async function rankByMeaning(
  open: readonly Skill[],
  request: string,
  embeddings: EmbeddingsInterface,
): Promise<readonly Skill[]> {
  const known = vectors.get(embeddings) ?? new Map<string, number[]>();
  vectors.set(embeddings, known);
  const fresh = [...new Set(open.map(summaryOf))].filter((summary) => !known.has(summary));
  const embedded = fresh.length > 0 ? await embeddings.embedDocuments(fresh) : [];
  for (const [position, summary] of fresh.entries()) known.set(summary, embedded[position] ?? []);
  const wanted = await embeddings.embedQuery(request);
  const scored = open.map((skill) => ({ skill, score: cosine(wanted, known.get(summaryOf(skill)) ?? []) }));
  return scored.toSorted((a, b) => b.score - a.score).map(({ skill }) => skill);
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const product = (left: readonly number[], right: readonly number[]) =>
    left.reduce((sum, value, position) => sum + value * (right[position] ?? 0), 0);
  return product(a, b) / (Math.sqrt(product(a, a) * product(b, b)) || 1);
}

/** Places far down say little about which of two is better; the usual constant for adding up ranks. */
const RANK_CONSTANT = 60;

/** One ranking of several by reciprocal ranks, which need no common scale. */
function merge(rankings: readonly (readonly Skill[])[]): readonly Skill[] {
  const scores = new Map<Skill, number>();
  for (const ranking of rankings) {
    for (const [place, skill] of ranking.entries()) {
      scores.set(skill, (scores.get(skill) ?? 0) + 1 / (RANK_CONSTANT + place));
    }
  }
  return [...scores].toSorted(([, a], [, b]) => b - a).map(([skill]) => skill);
}
