import type { Prompt } from "../offline-rules.ts";
import type { Subtask } from "./subtasks.ts";

// What a prompt of this example says, beyond what all prompts have. Rules, not intelligence.

/** What the decision is for, as the step's lines in the prompt say. */
export function assignmentIn({ text }: Prompt): "plan" | "plan again" | "round" | "conclude" {
  if (text.includes("\nThe plan did not come true: ")) return "plan again";
  if (text.includes("\nPlan: answer with calls only")) return "plan";
  return /\nRound \d+ of \d+: call what you still need/.test(text) ? "round" : "conclude";
}

// A list of several is shown as a table, one item alone on a line.
const SUBTASK =
  /\b([\w-]+)(?: \||, about:) (revenue|news)(?: \||, priority:) ([123])(?: \||, status:) (open|known|unknown)\b/g;

/** The subtasks that the state shows. */
export function subtasksIn({ text }: Prompt): readonly Subtask[] {
  return [...stateOf(text).matchAll(SUBTASK)].map(([, company = "", about, priority, status]) => ({
    company,
    about: about as Subtask["about"],
    priority: Number(priority),
    status: status as Subtask["status"],
  }));
}

/** The stock codes that the state shows, by company. */
export function codesIn({ text }: Prompt): Readonly<Record<string, string>> {
  const all = fieldIn(text, "codes").matchAll(/([\w-]+): "(\d{6})"/g);
  return Object.fromEntries([...all].map(([, company = "", code = ""]) => [company, code]));
}

/** The revenues that the state shows, by company. */
export function revenueIn({ text }: Prompt): Readonly<Record<string, readonly number[]>> {
  const all = fieldIn(text, "revenue").matchAll(/([\w-]+): \[([\d., -]*)\]/g);
  return Object.fromEntries([...all].map(([, company = "", list = ""]) => [company, list.split(", ").map(Number)]));
}

/** The news that the state shows, by company. */
export function newsIn({ text }: Prompt): Readonly<Record<string, string>> {
  const all = fieldIn(text, "news").matchAll(/([\w-]+): ("(?:[^"\\]|\\.)*"|[^,|{}[\]"]+)/g);
  return Object.fromEntries(
    [...all].map(([, company = "", note = ""]) => [
      company,
      note.startsWith('"') ? (JSON.parse(note) as string) : note,
    ]),
  );
}

function stateOf(text: string): string {
  return /<state[^>]*>\n([\s\S]*?)\n<\/state>/.exec(text)?.[1] ?? "";
}

function fieldIn(text: string, name: string): string {
  return new RegExp(`^${name}: (.*)$`, "m").exec(stateOf(text))?.[1] ?? "";
}

/** Whether results of calls are what came back last. */
export function isAfterCalls({ latest }: Prompt): boolean {
  return latest.kind.startsWith("result");
}

/** The companies of a sector, as a result of `list_sector` names them. */
export function sectorCompaniesIn({ text }: Prompt): readonly string[] {
  const list = /<observation(?: kind="results")?>[\s\S]*?^companies: \[([\w, -]+)\]$/m.exec(text)?.[1];
  return list?.split(", ") ?? [];
}

/** The sector that a message asks about. */
export function sectorIn(message: string): string | null {
  return /\b([a-z]+)[ -](?:sector|industry|companies|firms|stocks)\b/i.exec(message)?.[1]?.toLowerCase() ?? null;
}

const NO_NAMES = new Set(
  `a about an and any are as at between better by can company companies compare comparing compared could data did do does
   doing fast faster figures find firm firms for from give grew grow growing growth has have hello help hey hi how i in
   industry is it latest look looked me more much news of on or our out over performance please research revenue revenues
   sales sector show stock stocks tell than thank thanks that the their them to up us versus vs was we well were what which
   who will with would you your know want like need let hear heard all some its`.split(/\s+/),
);

/** The companies that a message names: its words, apart from those that are no names. */
export function companiesIn(message: string): readonly string[] {
  const words = message.toLowerCase().match(/[a-z][a-z\d-]*/g) ?? [];
  return [...new Set(words)].filter((word) => word.length > 1 && !NO_NAMES.has(word));
}

/** What a message asks about the companies that it names. */
export function topicsIn(message: string): readonly Subtask["about"][] {
  const news = /\bnews\b|\bhear/i.test(message);
  const revenue = /\brevenues?\b|\bsales\b|\bfigures?\b|\bgr(?:ew|ow)|\bcompar/i.test(message);
  return news ? (revenue ? ["revenue", "news"] : ["news"]) : ["revenue"];
}
