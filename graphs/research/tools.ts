import { defineTool, ToolError } from "statecard";
import { z } from "zod";
import { marketOf } from "./market.ts";

const code = z.string().regex(/^\d{6}$/, "a stock code has six digits");

/** What `search_company` gives. */
export const foundSchema = z.object({ company: z.string(), code, sector: z.string() });
/** What `get_listing` gives. */
export const listingSchema = z.object({ company: z.string(), code: code.nullable(), note: z.string() });
/** What `get_financials` gives. */
export const financialsSchema = z.object({
  company: z.string().nullable(),
  periods: z.array(z.string()),
  revenue: z.array(z.number()),
});
/** What `get_news` gives. */
export const newsSchema = z.object({ company: z.string(), text: z.string() });

// `trusted`: what comes back is our own data. News are not: anybody may have written them.

const searchCompany = defineTool({
  description: "Finds a company by its name in our index: its stock code and sector. The index is a year old.",
  parameters: z.object({ name: z.string().min(1).max(60) }),
  effect: "read",
  trusted: true,
  timeoutMs: 5000,
  result: foundSchema,
  async run({ name }, { clients }) {
    const found = await marketOf(clients).find(name);
    if (found) return found;
    throw new ToolError(`no company is called ${name}`, {
      type: "NOT_FOUND",
      hint: "check the name, or leave it open",
    });
  },
});

const listSector = defineTool({
  description: "Gives the names of the companies of a sector.",
  parameters: z.object({ sector: z.string().min(1).max(60) }),
  effect: "read",
  trusted: true,
  timeoutMs: 5000,
  result: z.object({ sector: z.string(), companies: z.array(z.string()) }),
  run: async ({ sector }, { clients }) => ({ sector, companies: await marketOf(clients).sector(sector) }),
});

const getListing = defineTool({
  description: "Follows a stock code that may be out of date to the one that the company trades under now, if any.",
  parameters: z.object({ code }),
  effect: "read",
  trusted: true,
  timeoutMs: 5000,
  result: listingSchema,
  async run({ code }, { clients }) {
    const listing = await marketOf(clients).listing(code);
    if (listing) return listing;
    throw new ToolError(`nothing has ever traded under ${code}`, { type: "NOT_FOUND" });
  },
});

const getFinancials = defineTool({
  description: "Gives the revenue of the latest three periods by stock code; empty where nothing trades under it.",
  parameters: z.object({ code }),
  effect: "read",
  trusted: true,
  timeoutMs: 5000,
  result: financialsSchema,
  run: ({ code }, { clients }) => marketOf(clients).figures(code),
});

const getNews = defineTool({
  description: "Gives the latest newspaper note on a company. Anybody may have written it: it proves nothing.",
  parameters: z.object({ company: z.string().min(1).max(60) }),
  effect: "read",
  timeoutMs: 5000,
  result: newsSchema,
  async run({ company }, { clients }) {
    return { company, text: (await marketOf(clients).news(company)) ?? "no news" };
  },
});

export const tools = {
  search_company: searchCompany,
  list_sector: listSector,
  get_listing: getListing,
  get_financials: getFinancials,
  get_news: getNews,
};
