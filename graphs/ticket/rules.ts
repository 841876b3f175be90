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

const MAX_ASKED = 2;
const HAN = /\p{Script=Han}/u;
const GREETING =
  /^(?:[^\p{L}\p{N}]*(?:hi|hello|hey|there|good (?:morning|afternoon|evening)|你好|您好|早上好|下午好|晚上好))+[^\p{L}\p{N}]*$/iu;
const PRIORITY = /(?<![\p{Script=Latin}\p{N}])p\s?([123])(?![\p{Script=Latin}\p{N}])/iu;
const ONLY_PRIORITY = /^(?:\P{L}|the|priority|is|优先级|是|为|p(?=\s?[123]))*$/iu;

// How an answer to "Shall I start?" begins counts; the rest may be about anything.
const FILLER = /^(?:[^\p{L}\p{N}]|(?:um+|well|thanks|thank you|please|just)\b|嗯|那|请|谢谢)*/iu;
const NO =
  /^(?:(?:no(?! (?:problem|worries))|nope|not(?! (?:sure|yet))|don[’']?t|do not|stop|cancel|never ?mind)\b|不(?!好意思)|别|先别|取消|算了)/i;
const YES =
  /^(?:(?:yes|yeah|yep|sure|okay|ok|go|start|proceed|do it|let[’']?s (?:go|do|start)|great|perfect|fine|good|right|correct)\b|(?:that|it|this|sounds|looks)\b[^.!?]{0,20}\b(?:good|great|fine|right|correct|perfect|works?)\b|开始|处理|好(?!像)|可以|行|同意|没问题|(?:是|对)的?(?!\p{L}))/iu;
const RESERVATION = /\b(?:no(?! (?:longer|problem|worries))|not|never|but|wait)\b|n[’']t\b|不|别|但/i;

function priorityOf(text: string): "P1" | "P2" | "P3" | null {
  const named = PRIORITY.exec(text)?.[1];
  if (named) return `P${named}` as "P1" | "P2" | "P3";
  if (/no rush|no hurry|(?:not|n[’']t) (?:\w+ )?(?:urgent|critical)|whenever|low priority|不急|不紧急/i.test(text))
    return "P3";
  if (/\b(?:urgent(?:ly)?|asap|as soon as possible|immediately|emergency|critical)\b|紧急|马上|立刻/i.test(text))
    return "P1";
  if (/\b(?:today|tonight)\b|尽快|今天/i.test(text)) return "P2";
  return null;
}

/** What a text says about the trouble: the text itself, unless it is only a greeting or a priority. */
function typeOf(text: string): string | null {
  const words = text.trim();
  if (!/\p{L}/u.test(words) || GREETING.test(words) || ONLY_PRIORITY.test(words)) return null;
  // Cut between characters, never within one.
  return words.slice(0, 2000).replace(/[\ud800-\udbff]$/, "");
}

/** Whether an answer agrees to start; an agreement with a reservation or a question in it is unclear. */
function agreement(text: string): "yes" | "no" | "unclear" {
  const answer = text.replace(FILLER, "");
  const sentence = /^[^.!?。!?\n]*/.exec(answer)?.[0] ?? "";
  if (NO.test(sentence)) return "no";
  const isQuestion = /^[^,,.。!!:;—–\n]*[??]/.test(answer);
  return YES.test(sentence) && !RESERVATION.test(sentence) && !isQuestion ? "yes" : "unclear";
}

function timesAsked(prompt: Prompt, question: string): number {
  return prompt.recent.filter((line) => line.includes(`asked: ${question}`)).length;
}

/** One decision of a support agent that knows a handful of rules, from the prompt alone. */
export function decideTicket(prompt: Prompt): object {
  const { step, state, said, question, next } = prompt;
  const chinese = HAN.test(String(state.ticketType ?? said + question));
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
  const type = state.ticketType === undefined && !aboutUrgency ? typeOf(said) : null;
  const priority = state.priority === undefined ? priorityOf(said) : null;
  const patch = { ...(type && { ticketType: type }), ...(priority && { priority }) };

  const known = { ...state, ...patch };
  if (known.ticketType === undefined) return { because: "the type is missing", patch, ask: phrases.what };
  if (known.priority !== undefined) return { because: "type and priority are known", patch, next: "deciding" };
  if (timesAsked(prompt, phrases.urgent) < MAX_ASKED)
    return { because: "the priority is missing", patch, ask: phrases.urgent };
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
  const answer = question === start ? agreement(said) : "unclear";
  if (answer === "yes") return { because: "the user agrees", next: "resolving" };
  if (answer === "unclear" && timesAsked(prompt, start) < MAX_ASKED)
    return { because: "it is not clear whether to start", ask: start };
  return {
    because: answer === "no" ? "the user does not want it" : "no clear go-ahead after two questions",
    patch: { result: phrases.nothingDone },
    reply: phrases.nothingDone,
    next: "done",
  };
}

/** The ticket example's own model, for when no key is set. */
export function ticketRules(): OfflineRules {
  return new OfflineRules(decideTicket);
}
