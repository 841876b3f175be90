import { readFileSync } from "node:fs";
import { z } from "zod";

const listingSchema = z.object({
  company: z.string(),
  /** The code that it trades under now; null once it has left the exchange. */
  code: z.string().nullable(),
  note: z.string(),
});
const entrySchema = z.object({ company: z.string(), code: z.string(), sector: z.string() });
const marketSchema = z.object({
  periods: z.array(z.string()),
  index: z.array(entrySchema),
  listings: z.array(listingSchema.extend({ old: z.string() })),
  figures: z.record(z.string(), z.array(z.number())),
  news: z.record(z.string(), z.string()),
});

type Entry = z.infer<typeof entrySchema>;
type Listing = z.infer<typeof listingSchema>;

interface Figures {
  /** Whose code it is; null where nothing trades under it. */
  readonly company: string | null;
  readonly periods: readonly string[];
  /** One for each period; empty where nothing trades under the code. */
  readonly revenue: readonly number[];
}

/** Where the figures come from. The index is older than the rest, so a code in it may be out of date. */
export interface Market {
  find(name: string): Promise<Entry | null>;
  sector(name: string): Promise<readonly string[]>;
  listing(code: string): Promise<Listing | null>;
  figures(code: string): Promise<Figures>;
  /** What a newspaper writes: text of other people. */
  news(company: string): Promise<string | null>;
}

/** The market of this example: ten companies in a file. */
export function bundledMarket(): Market {
  const text = readFileSync(new URL("./market.json", import.meta.url), "utf8");
  const { periods, index, listings, figures, news } = marketSchema.parse(JSON.parse(text));
  return {
    find: async (name) => index.find(({ company }) => company === name.toLowerCase()) ?? null,
    sector: async (name) => index.filter(({ sector }) => sector === name.toLowerCase()).map(({ company }) => company),
    async listing(code) {
      const moved = listings.find(({ old }) => old === code);
      if (moved) return { company: moved.company, code: moved.code, note: moved.note };
      const company = index.find((entry) => entry.code === code)?.company;
      return company === undefined ? null : { company, code, note: "unchanged" };
    },
    async figures(code) {
      const company = [...index, ...listings].find((candidate) => candidate.code === code)?.company ?? null;
      const revenue = figures[code] ?? [];
      return revenue.length > 0 ? { company, periods, revenue } : { company: null, periods: [], revenue };
    },
    news: async (company) => news[company.toLowerCase()] ?? null,
  };
}

/** The market among a task's clients. */
export function marketOf({ market }: Readonly<Record<string, unknown>>): Market {
  if (typeof market === "object" && market !== null && "find" in market && "figures" in market) return market as Market;
  throw new TypeError("clients.market is no market: pass compile(research, { clients: { market: bundledMarket() } })");
}
