/** A kind of request: a step of its own, with its section of the instructions and the tools that only it has. */
interface Kind {
  readonly heading: string;
  readonly tools: readonly string[];
  /** What of a user's words asks for it. */
  readonly words: RegExp;
}
export type Kinds = Readonly<Record<string, Kind>>;

/** The step that a request goes to by what it says, and the one for what says nothing of its kind. */
export const SORT = "sort";
export const ANY = "serve";

/** What the steps of a workflow differ in. */
interface Scoped {
  readonly instructions?: string;
  readonly tools: readonly string[];
}

/** Instructions cut at their headings: what concerns every request, and a step for each kind. */
export function stepsByKind(
  instructions: string,
  tools: readonly string[],
  kinds: Kinds,
): { readonly common: string; readonly steps: Readonly<Record<string, Scoped>> } {
  const sections = instructions.split(/\n(?=## )/);
  const sectionOf = ({ heading }: Kind) => sections.filter((section) => section.startsWith(`## ${heading}`)).join("\n");
  const all = Object.values(kinds);
  const own = new Set(all.map(sectionOf));
  const shared = tools.filter((name) => !all.some((kind) => kind.tools.includes(name)));
  return {
    common: sections.filter((section) => !own.has(section)).join("\n"),
    steps: {
      [ANY]: { tools: shared },
      ...Object.fromEntries(
        Object.entries(kinds).map(([name, kind]) => [
          name,
          { instructions: sectionOf(kind), tools: [...shared, ...kind.tools] },
        ]),
      ),
    },
  };
}

/**
 * The kind that a message asks for first; null where it asks for none, or for the one at hand.
 *
 * @param step where the task is.
 */
export function kindAskedFor(kinds: Kinds, text: string, step: string): string | null {
  const found = Object.entries(kinds)
    .map(([name, { words }]) => ({ name, at: text.search(words) }))
    .filter(({ at }) => at >= 0)
    .toSorted((a, b) => a.at - b.at);
  return found.some(({ name }) => name === step) ? null : (found[0]?.name ?? null);
}

/** The tau airline's requests; refunds can come up in any of them. (Words tuned on conversations with even numbers.) */
export const AIRLINE_KINDS: Kinds = {
  book: { heading: "Book flight", tools: ["book_reservation"], words: /\b(?:book|buy)\b/i },
  modify: {
    heading: "Modify flight",
    tools: ["update_reservation_flights", "update_reservation_baggages", "update_reservation_passengers"],
    words: /\b(?:changes?|changing|modif\w+|upgrad\w+|downgrad\w+|reschedul\w+|remov\w+)\b(?! (?:of|in) plans?)/i,
  },
  cancel: { heading: "Cancel flight", tools: ["cancel_reservation"], words: /\bcancel(?:ing|lation|s)?\b/i },
};
