/** How a provider finds the part of a prompt that it has seen before. */
type CacheMatch =
  /** It caches nothing. */
  | "none"
  /** The longest beginning that is the same as that of an earlier prompt. */
  | "prefix"
  /** Only up to places that are marked in the prompt. */
  | "breakpoints"
  /** Only units that an earlier prompt left behind, and only whole ones. */
  | "units";

/** What a provider's prompt cache costs and matches. Prices are shares of an uncached input token's. */
export interface CacheRule {
  readonly name: string;
  readonly match: CacheMatch;
  /** The price of a token that is read from the cache. */
  readonly read: number;
  /** The price of a token that is written to the cache. */
  readonly write: number;
  /** The shortest beginning that is cached, in tokens. */
  readonly minimum: number;
  /** Cached beginnings are multiples of this many tokens. */
  readonly step: number;
  /** How many places can be marked, and how many blocks back of one the provider looks. */
  readonly breakpoints: number;
  readonly lookBack: number;
  /** How a marked place is written in a content block; null where the provider marks none. */
  readonly mark: "cache_control" | "prompt_cache_breakpoint" | null;
}

const AUTOMATIC = { match: "prefix", write: 1, step: 1, breakpoints: 0, lookBack: 0, mark: null } as const;
const MARKED = {
  match: "breakpoints",
  read: 0.1,
  write: 1.25,
  minimum: 1024,
  step: 1,
  breakpoints: 4,
  lookBack: 20,
  mark: "cache_control",
} as const;

/**
 * The rules that are known, as data: prices and limits move, sources disagree. Pass a rule of your own as
 * `view.provider` to overrule them. Looked up in late 2026 in the providers' own pages.
 */
export const CACHE_RULES = {
  none: { ...AUTOMATIC, name: "none", match: "none", read: 1, minimum: 0 },
  /** Where nothing is known of the model: a cache as most have one, at a cautious price. */
  unknown: { ...AUTOMATIC, name: "unknown", read: 0.5, minimum: 1024, step: 128 },
  openai: { ...AUTOMATIC, name: "openai", read: 0.1, minimum: 1024, step: 128 },
  "openai-4o": { ...AUTOMATIC, name: "openai-4o", read: 0.5, minimum: 1024, step: 128 },
  "openai-5.6": { ...MARKED, name: "openai-5.6", lookBack: 80, mark: "prompt_cache_breakpoint" },
  anthropic: { ...MARKED, name: "anthropic" },
  "anthropic-4096": { ...MARKED, name: "anthropic-4096", minimum: 4096 },
  gemini: { ...AUTOMATIC, name: "gemini", read: 0.1, minimum: 2048 },
  deepseek: { ...AUTOMATIC, name: "deepseek", match: "units", read: 0.1, minimum: 0 },
  vllm: { ...AUTOMATIC, name: "vllm", read: 0, minimum: 0, step: 16 },
} as const satisfies Readonly<Record<string, CacheRule>>;

export type ProviderName = keyof typeof CACHE_RULES;

/** A rule by its name, or the rule itself. */
export function cacheRule(provider: ProviderName | CacheRule): CacheRule {
  return typeof provider === "string" ? CACHE_RULES[provider] : provider;
}
