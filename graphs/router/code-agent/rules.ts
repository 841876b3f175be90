import type { Prompt } from "../../offline-rules.ts";
import { isClosing, textsIn } from "../../log-detective/reading.ts";
import { isChinese } from "../language.ts";

/** Chinese words for what code names in English. */
const ENGLISH: Readonly<Record<string, string>> = {
  阈值: "threshold",
  门限: "threshold",
  波特率: "baud",
  描述符: "descriptor",
  环形缓冲: "ring",
  缓冲区: "ring",
  中断: "interrupt",
  溢出: "overrun",
  满: "full",
  初始化: "init",
};
const GENERAL = new Set(
  `a about and are as at code defined definition do does file for function has have how in is it its line many me of on or our
   project set show source tell that the this to used uses what when where which who why with implemented macro value big`.split(
    /\s+/,
  ),
);
const MAX_TERMS = 4;
const MAX_PLACES = 3;
const BEFORE = 4;

interface Place {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** One decision of a code agent that knows a handful of rules, from the prompt alone. */
export function decideCode(prompt: Prompt): object {
  return prompt.step === "looking" ? look(prompt) : answer(prompt);
}

/** First every word of the question, then what stands around the best place. */
function look(prompt: Prompt): object {
  const asked = textsIn(prompt.text, "asked");
  const isNew = (sign: string) => !asked.some((one) => one.startsWith(sign));
  const searches = termsIn(questionOf(prompt)).filter((term) => isNew(`search "${term}"`));
  if (searches.length > 0 && !isClosing(prompt)) {
    const calls = searches.map((text) => ({ tool: "search-code", args: { text } }));
    return { because: "these words may name the place", calls };
  }
  const [best] = bestPlaces(prompt);
  const hasRead = asked.some((one) => one.startsWith("read "));
  if (!best || hasRead || isClosing(prompt)) return { because: "what there is was read", next: "answering" };
  const args = { path: best.path, from: Math.max(1, best.line - BEFORE) };
  return { because: "what stands around the best place", calls: [{ tool: "read-file", args }] };
}

function answer(prompt: Prompt): object {
  const question = questionOf(prompt);
  const places = bestPlaces(prompt);
  const [best] = places;
  const text = best ? found(question, places) : notFound(question, termsIn(question));
  if (!best || prompt.recent.some((line) => line.includes("called remember"))) {
    return {
      because: best ? "the places are known" : "nothing was found",
      patch: { answer: text },
      reply: text,
      next: "done",
    };
  }
  const told = `${question.slice(0, 200)} - ${best.path}:${best.line}`;
  return {
    because: "worth knowing the next time",
    calls: [{ tool: "remember", args: { type: "task_result", text: told } }],
  };
}

function found(question: string, places: readonly Place[]): string {
  const first = places[0];
  const head = isChinese(question)
    ? `见 ${first?.path} 第 ${first?.line} 行。`
    : `See ${first?.path}, line ${first?.line}.`;
  return [head, ...places.map(({ path, line, text }) => `${path}:${line}: "${text}"`)].join("\n");
}

function notFound(question: string, terms: readonly string[]): string {
  const searched = terms.join(", ");
  if (isChinese(question)) return `这个项目的代码中没有找到答案。搜索过：${searched || "无"}。`;
  return `The code of this project does not answer that. I searched for: ${searched || "nothing that could be a name"}.`;
}

function questionOf({ state }: Prompt): string {
  return String(state.question ?? "");
}

/** What of a question may stand in code: names as they are, then words, then what Chinese words are called. */
function termsIn(question: string): readonly string[] {
  const words = question.match(/[a-z_][\w]*/gi) ?? [];
  const isName = (word: string) => /_|[a-z][A-Z]|^[A-Z]{2,}\d*$/.test(word);
  const plain = words.filter((word) => !isName(word) && word.length > 2 && !GENERAL.has(word.toLowerCase()));
  const translated = Object.entries(ENGLISH).flatMap(([chinese, english]) =>
    question.includes(chinese) ? [english] : [],
  );
  const stems = plain.map((word) => word.toLowerCase().replace(/s$/, ""));
  return [...new Set([...words.filter(isName), ...translated, ...stems])].slice(0, MAX_TERMS);
}

/** The lines that hold most words of the question; of equals, a definition first. */
function bestPlaces(prompt: Prompt): readonly Place[] {
  const terms = termsIn(questionOf(prompt)).map((term) => term.toLowerCase());
  const scored = textsIn(prompt.text, "lines").flatMap((shown) => {
    const [, path, line, text] = /^(\S+):(\d+) (.*)$/s.exec(shown) ?? [];
    if (path === undefined || text === undefined || path.endsWith(".md")) return [];
    const hits = terms.filter((term) => text.toLowerCase().includes(term)).length;
    const score = hits * 2 + (/^#define|^(?:static |struct |int |void )[^;]*$/.test(text) ? 1 : 0);
    return hits > 0 ? [{ path, line: Number(line), text, score }] : [];
  });
  return scored.toSorted((a, b) => b.score - a.score || (a.path < b.path ? -1 : 1)).slice(0, MAX_PLACES);
}
