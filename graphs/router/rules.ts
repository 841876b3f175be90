import { OfflineRules, type Prompt } from "../offline-rules.ts";
import { decideDetective } from "../log-detective/rules.ts";
import { decideCode } from "./code-agent/rules.ts";
import { isChinese } from "./language.ts";

const WHICH = "Is it about a log file or about the source code?";
const WHICH_CHINESE = "是关于日志文件，还是关于源代码？";
const DECLINED =
  "I cannot answer that: this team answers questions about log files and about the project's source code, and nothing else.";
const DECLINED_CHINESE = "这个问题我无法回答：这里只回答关于日志文件和项目源代码的问题。";
const MAX_ASKED = 2;

const LOG = /\blogs?\b|\.(?:log|gz)\b|\bgarbled\b|\b(?:errors?|warnings?)\b|日志|乱码|报错|告警/i;
const CODE =
  /\b(?:code|source|function|macro|variable|struct|implement\w*|defined?|definition)\b|\b[\w-]+\.(?:c|h)\b|\b[a-z]+_[a-z_]+\b|源码|代码|函数|变量|宏|定义|实现/i;
const VAGUE = /\b(?:help|problem|trouble|broken|wrong|stuck|not work\w*|doesn't work)\b|帮|问题|不行|坏了|出错|怎么办/i;
/** So few words say nothing. */
const FEW_WORDS = 3;

/** One decision of the router or of one of its agents, from the prompt alone. */
export function decideRouter(prompt: Prompt): object {
  const [, workflow] = /of the workflow "([^"]+)"/.exec(prompt.text) ?? [];
  if (workflow === "log-agent") return decideDetective(prompt);
  if (workflow === "code-agent") return decideCode(prompt);
  return prompt.step === "declining" ? decline(prompt) : classify(prompt);
}

function classify({ state, said, question, recent }: Prompt): object {
  const before = question === "" ? "" : String(state.request ?? "");
  const request = [before, said].filter(Boolean).join(" - ").slice(0, 1000);
  // An answer to the question which of the two it is says more than the request that was not clear.
  const clear = topicOf(said) ?? topicOf(request);
  const patch = request === "" ? {} : { request };
  if (clear === "log")
    return { because: "a log has to be read", patch: { ...patch, topic: clear }, next: "asking_logs" };
  if (clear === "code")
    return { because: "code has to be read", patch: { ...patch, topic: clear }, next: "asking_code" };
  const asked = recent.filter((line) => line.includes("asked: ")).length;
  if (isUnclear(request) && asked < MAX_ASKED) {
    return { because: "it may be about either", patch, ask: isChinese(request) ? WHICH_CHINESE : WHICH };
  }
  const because = asked > 0 ? `asked ${asked} times` : "it is about neither logs nor code";
  return { because, patch: { ...patch, topic: "other" }, next: "declining" };
}

/** Null where both or neither are named. */
function topicOf(text: string): "log" | "code" | null {
  const [isLog, isCode] = [LOG.test(text), CODE.test(text)];
  return isLog === isCode ? null : isLog ? "log" : "code";
}

function isUnclear(text: string): boolean {
  const isBoth = LOG.test(text) && CODE.test(text);
  const isShort = !isChinese(text) && text.split(/\s+/).filter(Boolean).length < FEW_WORDS;
  return isBoth || isShort || VAGUE.test(text);
}

function decline({ state }: Prompt): object {
  const told = isChinese(String(state.request ?? "")) ? DECLINED_CHINESE : DECLINED;
  return { because: "nobody here can answer it", patch: { answer: told }, reply: told, next: "declined" };
}

/** The example's own model, for when no key is set. */
export function routerRules(): OfflineRules {
  return new OfflineRules(decideRouter);
}
