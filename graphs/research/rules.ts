import { OfflineRules, type Prompt } from "../offline-rules.ts";
import {
  assignmentIn,
  companiesIn,
  isAfterCalls,
  newsIn,
  revenueIn,
  sectorCompaniesIn,
  sectorIn,
  subtasksIn,
  topicsIn,
} from "./reading.ts";
import type { Subtask } from "./subtasks.ts";

const WHICH = "Which companies is it about, or which sector?";
const NOBODY_SAID = "No company or sector was named, so nothing was looked up.";
const MAX_ASKED = 2;

/** One decision of a researcher that knows a handful of rules, from the prompt alone. It makes no plans. */
export function decideResearch(prompt: Prompt): object {
  return prompt.step === "scoping" ? scope(prompt) : look(prompt);
}

function scope(prompt: Prompt): object {
  const { said } = prompt;
  if (isAfterCalls(prompt)) {
    // How a whole sector does is a vague question: figures first, what is said about it after them.
    const companies = sectorCompaniesIn(prompt);
    const subtasks = [...subtasksOf(companies, "revenue", 1), ...subtasksOf(companies, "news", 2)];
    return companies.length > 0 ? scoped("figures come first, then news", subtasks) : ask(prompt);
  }
  const sector = sectorIn(said);
  if (sector !== null) {
    return { because: "a sector stands for its companies", calls: [{ tool: "list_sector", args: { sector } }] };
  }
  const companies = companiesIn(said);
  const subtasks = topicsIn(said).flatMap((about, index) => subtasksOf(companies, about, index + 1));
  return subtasks.length > 0 ? scoped("the companies are named", subtasks) : ask(prompt);
}

function scoped(because: string, subtasks: readonly Subtask[]): object {
  return { because, patch: { subtasks }, next: "looking" };
}

function ask({ recent }: Prompt): object {
  const asked = recent.filter((line) => line.includes(`asked: ${WHICH}`)).length;
  if (asked < MAX_ASKED) return { because: "nothing is named", ask: WHICH };
  return { because: `asked ${MAX_ASKED} times`, patch: { answer: NOBODY_SAID }, reply: NOBODY_SAID, next: "done" };
}

function subtasksOf(companies: readonly string[], about: Subtask["about"], priority: number): readonly Subtask[] {
  return companies.map((company) => ({ company, about, priority, status: "open" }));
}

/** A round of the free loop, or the conclusion. */
function look(prompt: Prompt): object {
  const [revenue, news] = [revenueIn(prompt), newsIn(prompt)];
  const subtasks = subtasksIn(prompt);
  const unheard = subtasks
    .filter(
      ({ company, about, status }) => status === "open" && about === "revenue" && !Object.hasOwn(revenue, company),
    )
    .map(({ company }) => company)
    .filter((company) => !Object.hasOwn(news, company));
  if (assignmentIn(prompt) === "round" && unheard.length > 0) {
    const calls = unheard.map((company) => ({ tool: "get_news", args: { company } }));
    return { because: "figures are missing; perhaps somebody wrote why", calls };
  }
  return { because: "this is what can be known", patch: { answer: answerOf(revenue, news) }, next: "checking" };
}

function answerOf(
  revenue: Readonly<Record<string, readonly number[]>>,
  news: Readonly<Record<string, string>>,
): string {
  const figures = Object.entries(revenue).map(([company, values]) => ({ company, values, growth: growthOf(values) }));
  const lines = figures.map(
    ({ company, values, growth }) =>
      `${company}: ${values.join(", ")} (${growth < 0 ? "" : "+"}${growth.toFixed(1)} %).`,
  );
  const [best, second] = figures.toSorted((a, b) => b.growth - a.growth);
  if (best && second) lines.push(`${best.company} grew most.`);
  for (const [company, note] of Object.entries(news)) lines.push(`Said about ${company}, unchecked: "${note}"`);
  return lines.join(" ");
}

function growthOf(values: readonly number[]): number {
  const [first = Number.NaN] = values;
  return ((values.at(-1) ?? Number.NaN) / first - 1) * 100;
}

/** The model of this example, for when no key is set. */
export function researchRules(): OfflineRules {
  return new OfflineRules(decideResearch);
}
