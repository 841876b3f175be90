import { OfflineRules, type Prompt } from "../offline-rules.ts";
import { assignmentIn, codesIn, newsIn, revenueIn, subtasksIn } from "./reading.ts";
import { dueSubtasks } from "../subtasks.ts";

const HAS_FIGURES = [{ path: "revenue", is: "not empty" }];

/** One plan of a planner that knows the way from a name to figures, and one way more where that ends. */
export function planResearch(prompt: Prompt): object {
  const [revenue, news] = [revenueIn(prompt), newsIn(prompt)];
  const missing = dueSubtasks(subtasksIn(prompt)).filter(
    ({ company, about }) => !Object.hasOwn(about === "revenue" ? revenue : news, company),
  );
  const isAgain = assignmentIn(prompt) === "plan again";
  const codes = codesIn(prompt);
  const calls = missing.flatMap(({ company, about }) => {
    if (about === "news") return [{ id: `news_${company}`, tool: "get_news", args: { company } }];
    const code = codes[company];
    // The code is known and brought nothing: it may have changed since.
    return isAgain && code !== undefined ? byListing(company, code) : byName(company);
  });
  return {
    because: isAgain ? "the codes may be out of date" : "each name leads to a code, and that to figures",
    calls,
  };
}

function byName(name: string): readonly object[] {
  return [
    { id: `search_${name}`, tool: "search_company", args: { name }, expect: [{ path: "code", is: "present" }] },
    figures(name, `search_${name}.code`),
  ];
}

function byListing(name: string, code: string): readonly object[] {
  return [
    { id: `listing_${name}`, tool: "get_listing", args: { code }, expect: [{ path: "code", is: "present" }] },
    figures(name, `listing_${name}.code`),
  ];
}

function figures(name: string, reference: string): object {
  return { id: `figures_${name}`, tool: "get_financials", args: { code: { $ref: reference } }, expect: HAS_FIGURES };
}

/** The planner of this example, for when no key is set. */
export function researchPlanner(): OfflineRules {
  return new OfflineRules(planResearch);
}
