import { readFileSync } from "node:fs";
import fc from "fast-check";
import { answer, compile, defineWorkflow, sqliteStore } from "statecard";
import { scriptedModel } from "statecard/testing";
import { describe, expect, test } from "vitest";
import { turnTokens } from "../../src/compile/turns.ts";
import { countTokens } from "../../src/internal/tokens.ts";
import { shortenLines } from "../../src/view/shorten.ts";

const option = (number: number, flight: string) =>
  `${number}. **Flight ${flight}**\n   - Departure: 07:00 PM EST\n   - Arrival: 09:30 PM EST\n   - Economy: $152, seats: 14`;
const OFFER = [
  "Here are the flights from New York (JFK) to Seattle (SEA) on May 20th:",
  ...["HAT136", "HAT218", "HAT039", "HAT083", "HAT201"].map((flight, index) => option(index + 1, flight)),
  "I can book any of them for you, and your certificate of $250 can be used for it as far as it goes.",
  "Which one would you like, and shall I add insurance for $30?",
].join("\n\n");

describe("a long text to people, shortened", () => {
  test("keeps which things it offered, in what order, and what it asked; details go first", () => {
    expect(shortenLines(OFFER, 130)).toBe(
      [
        "Here are the flights from New York (JFK) to Seattle (SEA) on May 20th:",
        "1. **Flight HAT136** …",
        "2. **Flight HAT218** …",
        "3. **Flight HAT039** …",
        "4. **Flight HAT083** …",
        "5. **Flight HAT201** …",
        "I can book any of them for you, and your certificate of $250 can be used for it as far as it goes.",
        "Which one would you like, and shall I add insurance for $30?",
      ].join("\n"),
    );
  });

  test("docs/context.md shows an outline as it is", () => {
    const offer = [
      OFFER.split("\n\n")[0],
      ...["HAT136", "HAT218", "HAT039"].map((flight, index) => option(index + 1, flight)),
      OFFER.split("\n\n").at(-1),
    ].join("\n\n");
    expect(readFileSync("docs/context.md", "utf8")).toContain(JSON.stringify({ ask: shortenLines(offer, 100) }));
  });

  test("then the ends of lines go, never of one that asks", () => {
    const shorter = shortenLines(OFFER, 100);
    expect(shorter).toContain("5. **Flight HAT201** …");
    expect(shorter).toMatch(/^I can book any of them for you.* …$/m);
    expect(shorter).toContain("Which one would you like, and shall I add insurance for $30?");
  });

  test("what it wants need not have a question mark: the last line stays", () => {
    const change = (number: number) =>
      `- Item ${number}: Espresso machine, black, 1.5 l, for item ${number + 20}: in red`;
    const text = [
      "This is what I would do, all of it on one order:",
      ...Array.from({ length: 10 }, (_each, index) => change(index)),
      "The difference of $14.20 goes back to the card that you have paid with, in five to seven days, once all is here.",
      "Please reply yes to confirm all ten of them, or tell me which of them you would rather not have changed at all.",
    ].join("\n");
    const shorter = shortenLines(text, 200);
    expect(shorter).toMatch(/^- Item 9: Espresso machine.* …$/m);
    expect(shorter).toMatch(/rather not have changed at all\.$/);
  });

  test("a list that stands further in is no detail of its heading, but what stands below its items is", () => {
    const list = ["HAT136", "HAT218", "HAT039"].map((flight, index) => option(index + 1, flight));
    const text = `Flights:\n${list.join("\n").replaceAll(/^/gm, "  ")}\n  Which one?`;
    const outline = "  1. **Flight HAT136** …\n  2. **Flight HAT218** …\n  3. **Flight HAT039** …\n  Which one?";
    expect(shortenLines(text, 60)).toBe(`Flights:\n${outline}`);
    expect(shortenLines(text.replace("Flights:\n", ""), 60)).toBe(outline);
    // Only as deep as it has to: what is an item's part stays as long as there is room.
    const deep =
      "- one\n  - part of it\n    - more of that part, which nobody has to know by now\n- two\n  - its part\nWell?";
    expect(shortenLines(deep, 25)).toBe("- one\n  - part of it …\n- two\n  - its part\nWell?");
  });

  test("items in bold, under headings or with numbers to the right keep their places", () => {
    const orders = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    const details = "\n   - what was in it and for how much\n   - where it went and when";
    const bold = orders.map((number) => `**${number}. Order W${number}**${details}`).join("\n");
    expect(shortenLines(`${bold}\nDone?`, 120)).toBe(
      `${orders.map((number) => `**${number}. Order W${number}** …`).join("\n")}\nDone?`,
    );
    const headed = orders.map((number) => `### Order W${number}${details}`).join("\n");
    for (const number of orders) expect(shortenLines(headed, 120)).toContain(`### Order W${number}`);
    const right = ` 9. ${"nine ".repeat(40)}\n10. ${"ten ".repeat(40)}\n 1. first\n 2. second\nDone?`;
    for (const item of [" 9. nine", "10. ten", " 1. first", " 2. second"]) {
      expect(shortenLines(right, 60)).toContain(item);
    }
  });

  test("a text of blanks stays one, and one with many depths is soon done", () => {
    expect(shortenLines(" \t".repeat(3000), 40).trim()).toContain("characters left out");
    const deep = Array.from({ length: 300 }, (_each, index) => `${" ".repeat(index)}- line ${index}`).join("\n");
    expect(shortenLines(deep, 100)).toContain("- line 0");
  });

  test("an address is no question", () => {
    const line = (number: number) =>
      `- https://example.com/orders?number=${number}&from=${"x".repeat(150)} is on its way`;
    const shorter = shortenLines([1, 2, 3, 4, 5, 6].map(line).join("\n"), 200);
    expect(shorter.split("\n").map((one) => one.slice(0, 42))).toEqual(
      [1, 2, 3, 4, 5, 6].map((number) => `- https://example.com/orders?number=${number}&from`.slice(0, 42)),
    );
    expect(shorter).not.toContain("characters left out");
  });

  test("is as it was where it has few tokens, and loses its middle where no line could say less", () => {
    expect(shortenLines(OFFER, 500)).toBe(OFFER);
    expect(shortenLines("why? ".repeat(200), 60)).toContain("characters left out");
  });

  test("has at most so many tokens, never half a character, and only lines that it had, in their order", () => {
    const line = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 200 }),
      fc.lorem({ maxCount: 30 }),
      fc.constantFrom("- Is that right?", "  - a detail of it", "价格是多少？", "🚀".repeat(90)),
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 15 }), fc.integer({ min: 40, max: 200 }), (lines, most) => {
        const text = lines.join("\n");
        const shorter = shortenLines(text, most);
        expect(countTokens(shorter)).toBeLessThanOrEqual(most);
        expect(Buffer.from(shorter).toString()).toBe(shorter);
        if (text.trim() !== "") expect(shorter.trim()).not.toBe("");
        if (shorter.includes("characters left out") || shorter === text) return;
        const before = text.split("\n").filter((one) => one.trim() !== "");
        expect(shorter.endsWith(before.at(-1) ?? "")).toBe(true);
        let from = 0;
        for (const part of shorter.split("\n")) {
          expect(part.replace(/ …$/, "").trim()).not.toBe("");
          const at = before.findIndex((one, index) => index >= from && one.startsWith(part.replace(/ …$/, "")));
          expect(at).toBeGreaterThanOrEqual(from);
          from = at + 1;
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("what the model has said", () => {
  const desk = defineWorkflow({
    name: "desk",
    version: 1,
    state: {},
    initial: "serve",
    steps: { serve: { to: ["serve", "done"] }, done: { final: true } },
  });

  async function secondPrompt(view: object): Promise<string> {
    const model = scriptedModel([{ ask: OFFER }, { reply: "Booked.", next: "done" }]);
    const graph = compile(desk, { model, store: sqliteStore(":memory:"), view });
    const asked = await graph.invoke({ message: "a flight" }, { configurable: { thread_id: "t" } });
    // People get all of it.
    expect(JSON.stringify(asked)).toContain("Arrival: 09:30 PM EST");
    await graph.invoke(answer(asked, "the third, yes"), { configurable: { thread_id: "t" } });
    return model.prompts.at(-1) ?? "";
  }

  test("is shown shortened from 200 tokens on, with what it offered", async () => {
    expect(countTokens(OFFER)).toBeGreaterThan(200);
    const prompt = await secondPrompt({ policy: "history" });
    expect(prompt).toContain(String.raw`3. **Flight HAT039** …\n4. **Flight HAT083** …`);
    expect(prompt).toContain("Which one would you like");
    expect(prompt).not.toContain("Arrival");
  });

  test("is a reply too; a policy without talk shows neither", async () => {
    const talk = defineWorkflow({
      name: "talk",
      version: 1,
      state: {},
      initial: "offer",
      steps: { offer: { to: ["book"] }, book: { to: ["done"] }, done: { final: true } },
    });
    const prompts = async (policy: string) => {
      const model = scriptedModel([{ reply: OFFER, next: "book" }, { next: "done" }]);
      const graph = compile(talk, { model, store: sqliteStore(":memory:"), view: { policy: policy as "history" } });
      await graph.invoke({ message: "a flight" }, { configurable: { thread_id: "t" } });
      return model.prompts.at(-1) ?? "";
    };
    expect(await prompts("history")).toContain(String.raw`3. **Flight HAT039** …\n`);
    expect(await prompts("structured")).toContain("<step>\nname: book\n");
    expect(await prompts("structured")).not.toContain("HAT039");
  });

  test("is whole where a report says what the whole conversation would have had", async () => {
    const whole = async (ask: string) => {
      const store = sqliteStore(":memory:");
      const graph = compile(desk, { model: scriptedModel([{ ask }, { reply: "Booked.", next: "done" }]), store });
      const asked = await graph.invoke({ message: "a flight" }, { configurable: { thread_id: "t" } });
      await graph.invoke(answer(asked, "yes"), { configurable: { thread_id: "t" } });
      const turns = await turnTokens(store, graph.runtime.workflow, graph.runtime.view, "t", "latest");
      return turns[0]?.wholeConversation ?? 0;
    };
    const longer = `${"x y z ".repeat(1000)}?`;
    expect((await whole(longer)) - (await whole("?"))).toBeGreaterThan(countTokens(longer) - 50);
  });

  test("is shown whole on demand", async () => {
    expect(await secondPrompt({ policy: "history", maxSaidTokens: Infinity })).toContain("Arrival: 09:30 PM EST");
    expect(await secondPrompt({ policy: "adaptive", maxSaidTokens: 1000 })).toContain("Arrival: 09:30 PM EST");
  });

  test("a slip in an option's name is refused, not ignored", () => {
    const view = { maxSaid: 50 } as object;
    expect(() => compile(desk, { view })).toThrow(/^unknown option view\.maxSaid; there are: policy, .*maxSaidTokens/);
  });

  test("a limit that is no limit is refused", () => {
    for (const maxSaidTokens of [0, 39, 50.5, Number.NaN]) {
      expect(() => compile(desk, { view: { maxSaidTokens } })).toThrow(
        /view\.maxSaidTokens must be a whole number from 40/,
      );
    }
  });
});
