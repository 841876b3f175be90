/** How a call to a provider ended. */
export const OUTCOMES = ["no_answer", "busy", "refused", "cancelled"] as const;

/** What happens on one call. */
export interface PhoneCall {
  readonly outcome: (typeof OUTCOMES)[number];
  /** What was said, where somebody answered. */
  readonly said?: string;
  readonly confirmation?: string;
}

export interface Contract {
  readonly provider: string;
  readonly number: string;
  /** What happens on the first call, the second, and so on; the last one repeats. */
  readonly calls: readonly PhoneCall[];
}

/** The contracts of this example and what their providers say: the same for everybody who runs it. */
export const CONTRACTS: Readonly<Record<string, Contract>> = {
  "1001": {
    provider: "Streamly",
    number: "0800 555 010",
    calls: [
      { outcome: "busy" },
      { outcome: "refused", said: "I can offer you three months at half the price instead." },
      { outcome: "cancelled", said: "All right. It ends with this month.", confirmation: "S-2207" },
    ],
  },
  "1002": {
    provider: "FitClub",
    number: "0800 555 020",
    calls: [
      { outcome: "no_answer" },
      { outcome: "busy" },
      { outcome: "refused", said: "We take cancellations in writing only, three months ahead." },
    ],
  },
  "1003": {
    provider: "Daily Courier",
    number: "0800 555 030",
    calls: [{ outcome: "cancelled", said: "Done. A pity to lose you.", confirmation: "DC-88" }],
  },
};
