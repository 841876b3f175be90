// What a customer's text says about an order, an amount and a reason. Rules, not intelligence.

const ORDER =
  /\b(?:order|purchase)(?:\s+(?:no|number|nr|id))?[\s.:#]*([a-z]{0,4}-?\d[\w-]{0,30})|订单\s*(?:编号|号码|号)?\s*[::#]?\s*([a-z]{0,4}-?\d[a-z\d-]{0,30})/iu;
const NUMBER = String.raw`(\d{1,3}(?:,\d{3})+(?:\.\d{1,2})?|\d+(?:\.\d{1,2})?)(?![\d.]*\d)`;
const AMOUNTS = [
  new RegExp(String.raw`[$€£¥¥]\s?${NUMBER}`, "i"),
  new RegExp(String.raw`${NUMBER}\s?(?:euros?|dollars?|pounds?|eur|usd|gbp|cny|rmb|yuan|元|块|[$€£])`, "i"),
  new RegExp(
    String.raw`(?:refund(?: of)?|pay back|paid back|money back(?: of)?|退款|退还|退回|退)\s*:?\s*${NUMBER}`,
    "i",
  ),
];
const ANY_AMOUNT = new RegExp(String.raw`(?<![\w.,-])${NUMBER}`, "i");

const CLAUSE = /[,,.。;;!!??\n]+(?!\d)|\b(?:because|since|as it|as they)\b|因为|由于/iu;
// A clause about the request itself, or a courtesy, is no reason.
const NOT_A_REASON =
  /\border\b|\brefund\b|money back|pay (?:me )?back|^\W*(?:please|thanks|thank you|hi|hello|hey|good (?:morning|afternoon|evening)|dear \w+|i|yes|no)\W*$|订单|退款|退钱|退还|^[^\p{L}]*(?:请|谢谢|您好|你好)[^\p{L}]*$/iu;

/** The order that a text names; as an answer to the question about it, any word with a digit. */
export function orderIn(text: string, asked: boolean): string | null {
  const [, latin, han] = ORDER.exec(text) ?? [];
  return latin ?? han ?? (asked ? (/[\w-]*\d[\w-]*/.exec(text)?.[0].slice(0, 40) ?? null) : null);
}

/** The amount that a text asks for; as an answer to the question about it, any number. */
export function amountIn(text: string, asked: boolean): number | null {
  const rest = text.replace(ORDER, " ");
  for (const pattern of asked ? [...AMOUNTS, ANY_AMOUNT] : AMOUNTS) {
    const amount = Number(pattern.exec(rest)?.[1]?.replaceAll(",", "") ?? Number.NaN);
    if (amount > 0) return amount;
  }
  return null;
}

/** The reason that a text gives: the clauses that are not about the request; an answer counts whole. */
export function reasonIn(text: string, asked: boolean): string | null {
  const clauses = asked ? [text] : text.split(CLAUSE).filter((clause) => !NOT_A_REASON.test(clause));
  const reason = clauses.map((clause) => clause.trim()).filter((clause) => /\p{L}/u.test(clause));
  // Cut between characters, never within one.
  return reason.length > 0
    ? reason
        .join(", ")
        .slice(0, 2000)
        .replace(/[\ud800-\udbff]$/, "")
    : null;
}
