import { OfflineRules, type CallOutcome, type Prompt } from "../offline-rules.ts";
import { amountIn, orderIn, reasonIn } from "./reading.ts";

/** What the rules say, in the customer's language. */
interface Phrases {
  readonly order: string;
  readonly amount: string;
  readonly reason: string;
  readonly again: (amount: string, order: string) => string;
  readonly paid: (amount: string, order: string, receipt: string) => string;
  readonly paidOutcome: (amount: string) => string;
  readonly rejected: (why: string) => string;
  readonly rejectedOutcome: (why: string) => string;
  readonly failed: string;
  readonly failedOutcome: (why: string) => string;
  readonly late: string;
  readonly incomplete: string;
}

const ENGLISH: Phrases = {
  order: "Which order is it about?",
  amount: "How much would you like back?",
  reason: "What was wrong with it?",
  again: (amount, order) => `Nobody approved ${amount} for order ${order} in time. Shall I ask again?`,
  paid: (amount, order, receipt) => `${amount} for order ${order} are on the way back to you. Receipt: ${receipt}.`,
  paidOutcome: (amount) => `paid back ${amount}`,
  rejected: (why) => `I am sorry, the refund was not approved: ${why}`,
  rejectedOutcome: (why) => `not paid back: ${why}`,
  failed: "I am sorry, the payment did not work. A colleague will look at it.",
  failedOutcome: (why) => `left to a colleague: ${why}`,
  late: "not paid back: nobody approved it in time",
  incomplete: "not paid back: the request stayed incomplete",
};

const CHINESE: Phrases = {
  order: "请问是哪个订单?",
  amount: "您希望退款多少?",
  reason: "请问是什么问题?",
  again: (amount, order) => `订单 ${order} 的退款 ${amount} 未能及时获批。要再申请一次吗?`,
  paid: (amount, order, receipt) => `订单 ${order} 的退款 ${amount} 已汇出。收据:${receipt}。`,
  paidOutcome: (amount) => `已退款 ${amount}`,
  rejected: (why) => `很抱歉,退款未获批准:${why}`,
  rejectedOutcome: (why) => `未退款:${why}`,
  failed: "很抱歉,付款未成功,同事会跟进处理。",
  failedOutcome: (why) => `已转交同事:${why}`,
  late: "未退款:未能及时获批",
  incomplete: "未退款:信息不完整",
};

// As the runtime says it in the results; the rules, like a model, know it from there alone.
const EXPIRED = "the time to approve it is over";

const MAX_ASKED = 2;
const HAN = /\p{Script=Han}/u;
const YES =
  /^\W*(?:yes|yeah|yep|sure|ok|okay|please|go|do|again|try)\b|^[^\p{L}]*(?:好(?!像)|可以|要|是|对|行|再|请)/iu;
const RESERVATION = /\b(?:no|not|never|but|wait)\b|n[’']t\b|不|别|但/i;

/** One decision of a refund desk that knows a handful of rules, from the prompt alone. */
export function decideRefund(prompt: Prompt): object {
  const { state, said, question } = prompt;
  const phrases = HAN.test(`${String(state.reason ?? "")}${said}${question}`) ? CHINESE : ENGLISH;
  return prompt.step === "paying" ? pay(prompt, phrases) : talk(prompt, phrases);
}

function talk(prompt: Prompt, phrases: Phrases): object {
  const { state, said, question, results } = prompt;
  const told = { amount: money(state.amount), order: String(state.order) };
  const again = phrases.again(told.amount, told.order);
  if (results.some(isLate)) return { because: "the time for approvals is over", ask: again };
  if (question === again) return afterDelay(prompt, phrases, again);

  const patch = readFields(said, question, state, phrases);
  const known = { ...state, ...patch };
  for (const name of ["order", "amount", "reason"] as const) {
    if (known[name] !== undefined) continue;
    if (timesAsked(prompt, phrases[name]) < MAX_ASKED)
      return { because: `the ${name} is missing`, patch, ask: phrases[name] };
    return {
      because: `asked ${MAX_ASKED} times for the ${name}`,
      patch: { ...patch, outcome: phrases.incomplete },
      reply: phrases.incomplete,
      next: "closed",
    };
  }
  return { because: "order, amount and reason are known", patch, next: "paying" };
}

/** What a text says about the fields that are missing; an answer is about the field that was asked for. */
function readFields(
  said: string,
  question: string,
  state: Prompt["state"],
  phrases: Phrases,
): Readonly<Record<string, unknown>> {
  const asked = (["order", "amount", "reason"] as const).find((name) => phrases[name] === question);
  const order = state.order === undefined ? orderIn(said, asked === "order") : null;
  const amount = state.amount === undefined ? amountIn(said, asked === "amount") : null;
  // "about 40 euros" answers a question; it is no reason.
  const mayBeReason = state.reason === undefined && (asked === "reason" || question === "");
  const reason = mayBeReason ? reasonIn(said, asked === "reason") : null;
  return { ...(order && { order }), ...(amount && { amount }), ...(reason && { reason }) };
}

function afterDelay(prompt: Prompt, phrases: Phrases, again: string): object {
  const { said } = prompt;
  const agrees = YES.test(said) && !RESERVATION.test(said);
  if (agrees) return { because: "the customer wants it asked again", next: "paying" };
  if (!RESERVATION.test(said) && timesAsked(prompt, again) < MAX_ASKED) {
    return { because: "it is not clear whether to ask again", ask: again };
  }
  return {
    because: "the customer does not want to wait",
    patch: { outcome: phrases.late },
    reply: phrases.late,
    next: "closed",
  };
}

function pay({ state, results }: Prompt, phrases: Phrases): object {
  const [result] = results;
  const order = String(state.order);
  if (!result)
    return { because: "everything is known", calls: [{ tool: "pay_back", args: { order, amount: state.amount } }] };
  const why = result.detail.replace(/^Error: /, "");
  if (result.status === "ok") {
    const receipt = /\breceipt: "?([^",}\s]+)/.exec(result.detail)?.[1] ?? "-";
    // A person may have changed the amount; the result then tells which it was.
    const changed = /with \{[^}]*\bamount: ([\d.]+)/.exec(result.detail)?.[1];
    const amount = changed === undefined ? Number(state.amount) : Number(changed);
    return {
      because: "it was paid",
      patch: { amount, receipt, outcome: phrases.paidOutcome(money(amount)) },
      reply: phrases.paid(money(amount), order, receipt),
      next: "closed",
    };
  }
  if (result.status === "refused") {
    return {
      because: "a person did not approve it",
      patch: { outcome: phrases.rejectedOutcome(why) },
      reply: phrases.rejected(why),
      next: "closed",
    };
  }
  return {
    because: "the payment failed",
    patch: { outcome: phrases.failedOutcome(why) },
    reply: phrases.failed,
    next: "closed",
  };
}

function isLate({ status, detail }: CallOutcome): boolean {
  return status === "refused" && detail.includes(EXPIRED);
}

function money(amount: unknown): string {
  return Number(amount).toLocaleString("en-US");
}

function timesAsked(prompt: Prompt, question: string): number {
  return prompt.recent.filter((line) => line.includes(`asked: ${question}`)).length;
}

/** The refund example's own model, for when no key is set. */
export function refundRules(): OfflineRules {
  return new OfflineRules(decideRefund);
}
