import { OfflineRules, type Prompt } from "../offline-rules.ts";

/** What the rules say, in the user's language. */
interface Phrases {
  readonly what: string;
  readonly urgent: string;
  readonly start: (solution: string) => string;
  readonly told: (solution: string) => string;
  readonly closed: string;
  readonly nothingDone: string;
}

const ENGLISH: Phrases = {
  what: "What is broken?",
  urgent: "How urgent is it: P1, P2 or P3?",
  start: (solution) => `I would ${solution}. Shall I start?`,
  told: (solution) => `Done: ${solution}. The ticket is closed.`,
  closed: "closed, user told",
  nothingDone: "closed without action, user told",
};

const CHINESE: Phrases = {
  what: "哪里出了问题?",
  urgent: "有多紧急:P1、P2 还是 P3?",
  start: (solution) => `我打算${solution}。现在开始处理吗?`,
  told: (solution) => `已完成:${solution}。工单已关闭。`,
  closed: "已关闭,已告知用户",
  nothingDone: "未处理即关闭,已告知用户",
};

/** Known kinds of trouble: a word in the ticket, the cause, the remedy; first English, then Chinese. */
const REMEDIES: readonly (readonly [
  word: RegExp,
  english: readonly [string, string],
  chinese: readonly [string, string],
])[] = [
  [
    /\bnetwork|\binternet|\bwi-?fi\b|\bconnection|网络|连接/i,
    ["the line drops, most likely at the router", "restart the router and renew the address lease"],
    ["线路中断,问题多半在路由器", "重启路由器并更新地址租约"],
  ],
  [
    /\bpassword|\b(?:log|sign) ?in\b|\blocked\b|密码|登录|账号/i,
    ["the sign-in is refused, most likely a locked account", "unlock the account and send a link for a new password"],
    ["登录被拒绝,账号多半已锁定", "解锁账号并发送重设密码的链接"],
  ],
  [
    /\bprint|打印/i,
    ["the print queue is stuck", "empty the print queue and restart the printer"],
    ["打印队列卡住", "清空打印队列并重启打印机"],
  ],
  [
    /\border|\breturn|\bexchang|\brefund|\bdeliver|订单|退款|退货/i,
    ["the order is not as the customer wants it", "hand the order to the order desk with a note"],
    ["订单与客户的要求不符", "附上说明转交订单组"],
  ],
];

const UNKNOWN_REMEDY = [
  ["the cause is not known yet", "hand the ticket to a specialist with these notes"],
  ["原因尚不清楚", "附上记录转交专家处理"],
] as const;

const HAN = /\p{Script=Han}/u;
const GREETING =
  /^(?:[^\p{L}\p{N}]*(?:hi|hello|hey|there|good (?:morning|afternoon|evening)|你好|您好|早上好|下午好|晚上好))+[^\p{L}\p{N}]*$/iu;
const ONLY_PRIORITY = /^[^\p{L}\p{N}]*(?:(?:the )?priority|优先级)?[^\p{L}\p{N}]*(?:is|是|为)?\s*p\s?[123][^\p{L}\p{N}]*$/iu;

/** Answers to "Shall I start?": how they begin counts, since the rest may be about anything. */
const FILLER =
  /^(?:[^\p{L}\p{N}]*(?:(?:um+|uh|well|ah|oh|hi|hello|thanks|thank you|please|just|i think)\b|请|嗯|那就?|谢谢|你好))*[^\p{L}\p{N}]*/iu;
const NO = /^(?:(?:no|nope|nah|not|don[’']?t|do not|stop|cancel|never ?mind|wait)\b|不(?!好意思)|别|取消|先别|算了)/i;
const YES =
  /^(?:(?:yes|yeah|yep|yup|ok|okay|sure|go|start|proceed|do it|do that|let[’']?s go|great|perfect|awesome|fine|good|right|correct|agreed|(?:that|it|this)(?: is|[’']s| would be| sounds| looks| works)? ?(?:good|fine|great|right|correct|perfect)?|(?:sounds|looks) (?:good|great|right|fine))\b|开始|好|可以|行|是|对|同意|没问题|处理)/i;
const NEGATION = /\b(?:no|not|never|but|wait|stop)\b|n[’']t\b|不|别|但/i;
const MAX_ASKED = 2;

function priorityOf(text: string): "P1" | "P2" | "P3" | null {
  const named = /p\s?([123])(?!\d)/i.exec(text)?.[1];
  if (named) return `P${named}` as "P1" | "P2" | "P3";
  if (/no rush|no hurry|not urgent|whenever|low priority|不急|不紧急/i.test(text)) return "P3";
  if (/urgent|asap|as soon as possible|immediately|emergency|critical|right now|紧急|马上|立刻/i.test(text))
    return "P1";
  if (/\btoday\b|\bsoon\b|tonight|important|尽快|今天/i.test(text)) return "P2";
  return null;
}

function timesAsked(prompt: Prompt, question: string): number {
  return prompt.recent.filter((line) => line.includes(`asked: ${question}`)).length;
}

/** One decision of a support agent that knows a handful of rules, from the prompt alone. */
export function decideTicket(prompt: Prompt): object {
  const { step, state, said, next } = prompt;
  const chinese = /\p{Script=Han}/u.test(`${said}${String(state.ticketType ?? "")}`);
  const phrases = chinese ? CHINESE : ENGLISH;
  switch (step) {
    case "init":
      return {
        because: "what is known decides where to go",
        next: next.includes("deciding") ? "deciding" : "gathering_info",
      };
    case "gathering_info":
      return gather(prompt, phrases);
    case "deciding":
      return propose(prompt, phrases, chinese);
    case "resolving":
      return {
        because: "the solution was carried out",
        patch: { result: phrases.closed },
        reply: phrases.told(String(state.solution)),
        next: "done",
      };
    default:
      return {};
  }
}

function gather(prompt: Prompt, phrases: Phrases): object {
  const { state, said, question } = prompt;
  const aboutUrgency = question === ENGLISH.urgent || question === CHINESE.urgent;
  const patch: Record<string, string> = {};
  if (state.ticketType === undefined && said && !GREETING.test(said) && !aboutUrgency)
    patch.ticketType = said.slice(0, 2000);
  const priority = said ? priorityOf(said) : null;
  if (state.priority === undefined && priority) patch.priority = priority;

  const known = { ...state, ...patch };
  if (known.ticketType === undefined)
    return { because: "the type is missing", ...(priority ? { patch } : {}), ask: phrases.what };
  if (known.priority !== undefined) return { because: "type and priority are known", patch, next: "deciding" };
  if (timesAsked(prompt, phrases.urgent) < MAX_ASKED)
    return { because: "the priority is missing", ...(patch.ticketType ? { patch } : {}), ask: phrases.urgent };
  return {
    because: "asked twice without a priority, so it can wait",
    patch: { ...patch, priority: "P3" },
    next: "deciding",
  };
}

function propose(prompt: Prompt, phrases: Phrases, chinese: boolean): object {
  const { state, said, question } = prompt;
  if (state.solution === undefined) {
    const [, english, han] = REMEDIES.find(([word]) => word.test(String(state.ticketType))) ?? [
      null,
      ...UNKNOWN_REMEDY,
    ];
    const [analysis, solution] = chinese ? han : english;
    return { because: "the ticket tells what to do", patch: { analysis, solution }, ask: phrases.start(solution) };
  }
  const start = phrases.start(String(state.solution));
  if (question === start && NO.test(said)) {
    return {
      because: "the user does not want it",
      patch: { result: phrases.nothingDone },
      reply: phrases.nothingDone,
      next: "done",
    };
  }
  if (question === start && YES.test(said)) return { because: "the user agrees", next: "resolving" };
  if (timesAsked(prompt, start) < MAX_ASKED) return { because: "it is not clear whether to start", ask: start };
  return {
    because: "no clear go-ahead after two questions",
    patch: { result: phrases.nothingDone },
    reply: phrases.nothingDone,
    next: "done",
  };
}

/** The ticket example's own model, for when no key is set. */
export function ticketRules(): OfflineRules {
  return new OfflineRules(decideTicket);
}
