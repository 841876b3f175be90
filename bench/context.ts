import type { ProviderName } from "../src/view/cache-rules.ts";
import { measureSet, type Measured, type SetMeasured } from "./context-measure.ts";
import { isHeldOut, missingData } from "./context-sets.ts";
import { ORDINARY, OTHERS, SIDES, type Side } from "./context-policies.ts";
import { contextSets } from "./context-workflows.ts";
import { median } from "./measure.ts";
import type { Limit, Report, Table } from "./report.ts";

const RULES: readonly ProviderName[] = ["none", "openai", "anthropic", "gemini", "deepseek", "vllm"];
/** The rule that most targets speak of. */
const CACHED = "openai";

/** What the policies show a model and what that costs, on recorded conversations. */
export async function run(): Promise<Report> {
  const missing = missingData();
  if (missing) throw new Error(missing);
  const sets: SetMeasured[] = [];
  for (const set of contextSets()) {
    process.stderr.write(`context: ${set.name}\n`);
    sets.push(measureSet(set, RULES, isHeldOut));
    await Promise.resolve();
  }
  return {
    name: "context",
    title: "what a model is shown, and what it costs",
    summary:
      "Recorded conversations are replayed as tasks: what was said and returned becomes the log, what code keeps becomes the state, and the real rendering makes the prompt of every recorded model call under every policy. Two sides are ordinary ones, with JSON tool schemas and nothing left out: `agent` keeps the recorded messages, `paper` shows the state as JSON, the last decision and what came of it, as the paper on explicit state does. The airline's requests have steps of their own, as a workflow would: code sorts by the words of the first message, a step shows its section of the instructions and its tools, and a decision that only goes to another step is one more prompt, paid for by us alone. All others are one step. Paid is in uncached input tokens' worth per recorded call, played by rules for providers' caches. Rules were tuned on conversations with even numbers; these are the odd ones.",
    seed: 0,
    settings: {
      "token limit": 8000,
      "result limit": 1000,
      conversations: sets.reduce((sum, set) => sum + set.conversations, 0),
    },
    tables: [...sets.map(policyTable), ...sets.map(ruleTable), distributionTable(sets), missTable(sets)],
    limits: limitsOf(sets),
    notShown: [
      "Whether a model decides as well: a value that is visible is necessary, not sufficient. The recorded models saw everything, and their decisions are taken as they are.",
      "State that a model keeps itself: here code keeps it, from earlier messages only: fields of results, what the user said, never what the assistant did. A model that writes patches pays for them as output.",
      "Output tokens, which are the recorded ones and the same for every policy.",
      "The decision's schema is counted for every side as the same in every step (as with `schemaScope: 'workflow'`; one that changes with each step is found in no cache after a move) and with tool arguments as any object, since signatures tell them and code checks them. A strict schema with all tools' arguments adds about what the JSON schemas of the tools have.",
      "Real caches: they forget after minutes, and nothing here tells how often. Cold is a task on its own, warm has before it the first two prompts of the task before, or of the last one that began at each step.",
      "Whether a step shows enough of the airline's instructions: the tools that were called and the values they were called with are looked for, the sentences that forbid a call cannot be. A decision that goes to another step is counted before a call that is none of the step's, and before words after a user has asked for another kind.",
      "Descriptions of tools in the tau sets are their first sentences on every side but agent's: what follows repeats the instructions, or what an error says anyway.",
      "What a shorter prompt costs in understanding: what the model has asked or replied is shown in outline from 150 tokens on, and a record that the prompt has shown before without long values that are the same. Both can be switched off (`maxSaidTokens`, `repeatRecords`).",
      "Texts of tools in sgd-dev, bfcl-long-context and the intercode sets, whose agents' instructions and schemas were not recorded; short stand-ins are used on all sides.",
    ],
    raw: sets.map(slim),
  };
}

/** Conversation by conversation only for the policy that the page speaks of. */
function slim({ measured, ...set }: SetMeasured) {
  return {
    ...set,
    measured: measured.map(({ paid, ofCheapest, misses, ...one }) =>
      one.side === "adaptive" ? { ...one, paid, ofCheapest, misses } : one,
    ),
  };
}

const rounded = (value: number) => Math.round(value);
const share = (a: number, b: number) => Number((a / b).toFixed(3));
const percent = (value: number) => (100 * value).toFixed(2);

function sideOf(set: SetMeasured, rule: string, side: string): Measured {
  const found = set.measured.find((one) => one.rule === rule && one.side === side);
  if (!found) throw new Error(`${set.name}: ${side} was not measured under ${rule}`);
  return found;
}

function cheapest(set: SetMeasured, rule: string, sides: readonly Side[], kind: "warm" | "cold"): number {
  return Math.min(...sides.map((side) => sideOf(set, rule, side)[kind]));
}

function policyTable(set: SetMeasured): Table {
  const agent = sideOf(set, CACHED, "agent");
  return {
    title: `${set.name}: policies, cached as by OpenAI before 5.6`,
    columns: [
      "policy",
      "mean",
      "p95",
      "max",
      "of agent",
      "paid warm",
      "of agent",
      "paid cold",
      "values seen %",
      "tools seen %",
    ],
    rows: SIDES.map((side) => {
      const one = sideOf(set, CACHED, side);
      return [
        side,
        rounded(one.tokens.mean),
        one.tokens.p95,
        one.tokens.max,
        share(one.tokens.mean, agent.tokens.mean),
        rounded(one.warm),
        share(one.warm, agent.warm),
        rounded(one.cold),
        percent(one.valuesSeen),
        percent(one.toolsSeen),
      ];
    }),
    note: `${set.conversations} conversations, ${set.calls} recorded model calls. Tokens (o200k) with the decision's schema. The agent's row is the ceiling of what can be seen in full history.`,
  };
}

function ruleTable(set: SetMeasured): Table {
  return {
    title: `${set.name}: adaptive under each cache rule`,
    columns: [
      "rule",
      ...OTHERS.map((side) => `${side} warm`),
      "adaptive warm",
      "of agent or paper",
      "of cheapest",
      ...OTHERS.map((side) => `${side} cold`),
      "adaptive cold",
      "of cheapest",
      "values seen %",
    ],
    rows: RULES.map((rule) => {
      const adaptive = sideOf(set, rule, "adaptive");
      const paid = (kind: "warm" | "cold") => OTHERS.map((side) => rounded(sideOf(set, rule, side)[kind]));
      return [
        rule,
        ...paid("warm"),
        rounded(adaptive.warm),
        share(adaptive.warm, cheapest(set, rule, ORDINARY, "warm")),
        share(adaptive.warm, cheapest(set, rule, OTHERS, "warm")),
        ...paid("cold"),
        rounded(adaptive.cold),
        share(adaptive.cold, cheapest(set, rule, OTHERS, "cold")),
        percent(adaptive.valuesSeen),
      ];
    }),
    note: "Of the cheaper of the two ordinary ones, and of the cheapest with our own policy `state`, which is leaner than the paper's.",
  };
}

function distributionTable(sets: readonly SetMeasured[]): Table {
  const rules = ["none", "openai", "anthropic"];
  return {
    title: "Conversation by conversation: adaptive's paid cost against the cheapest of agent, paper and state, warm",
    columns: ["set", "rule", "best tenth", "median", "worst tenth", "worst", "dearer by over 5 %"],
    rows: sets.flatMap((set) =>
      rules.map((rule) => {
        const ratios = sideOf(set, rule, "adaptive").ofCheapest.toSorted((a, b) => a - b);
        const at = (part: number) => (ratios[Math.floor(part * (ratios.length - 1))] ?? Number.NaN).toFixed(2);
        const dearer = ratios.filter((ratio) => ratio > 1.05).length;
        return [set.name, rule, at(0.1), median(ratios).toFixed(2), at(0.9), at(1), `${dearer} of ${ratios.length}`];
      }),
    ),
    note: "No policy that cannot see the future is never dearer; per set it should not be.",
  };
}

function missTable(sets: readonly SetMeasured[]): Table {
  return {
    title: "Values that the recorded calls used and adaptive did not show",
    columns: ["set", "tool and key", "not shown", "not in full history either"],
    rows: sets.flatMap((set) => {
      const agent = new Map(sideOf(set, CACHED, "agent").misses);
      return sideOf(set, CACHED, "adaptive")
        .misses.slice(0, 8)
        .map(([what, count]) => [set.name, what, count, agent.get(what) ?? 0]);
    }),
    note: "Cached as by OpenAI before 5.6; the most frequent of each set.",
  };
}

function limitsOf(sets: readonly SetMeasured[]): readonly Limit[] {
  const named = new Map(sets.map((set) => [set.name, set]));
  const shares = (name: string, tokens: number | null, paid: number): Limit[] => {
    const set = named.get(name);
    if (!set) return [];
    const [agent, adaptive] = [sideOf(set, CACHED, "agent"), sideOf(set, CACHED, "adaptive")];
    return [
      ...(tokens === null
        ? []
        : [
            {
              promise: `${name}: tokens of cached history's`,
              value: share(adaptive.tokens.mean, agent.tokens.mean),
              limit: tokens,
            },
          ]),
      {
        promise: `${name}: paid of the cheaper of cached history (agent) and pure state (paper), warm`,
        value: share(adaptive.warm, cheapest(set, CACHED, ORDINARY, "warm")),
        limit: paid,
      },
      {
        promise: `${name}: points of visible values below the ceiling`,
        value: Number((100 * (agent.valuesSeen - adaptive.valuesSeen)).toFixed(2)),
        limit: 1,
      },
      {
        promise: `${name}: points of visible tools below all`,
        value: Number((100 * (1 - adaptive.toolsSeen)).toFixed(2)),
        limit: 1,
      },
    ];
  };
  const shell = named.get("intercode-ctf");
  return [
    ...shares("tau-airline", 0.68, 0.68),
    ...shares("tau2-retail", 0.64, 0.65),
    ...shares("intercode-ctf", null, 0.6),
    ...(shell
      ? [
          {
            promise: "intercode-ctf: largest prompt in tokens",
            value: sideOf(shell, CACHED, "adaptive").tokens.max,
            limit: 16_000,
          },
        ]
      : []),
    ...sets.map((set): Limit => ({
      promise: `${set.name}: tokens' worth a call above the cheapest of agent, paper and state by more than 5 % and 300, worst rule, warm or cold`,
      value: rounded(Math.max(0, ...RULES.flatMap((rule) => excess(set, rule)))),
      limit: 0,
    })),
  ];
}

/** What adaptive costs beyond what is allowed over the cheapest of the others. */
function excess(set: SetMeasured, rule: string): number[] {
  return (["warm", "cold"] as const).map((kind) => {
    const cheaper = cheapest(set, rule, OTHERS, kind);
    return sideOf(set, rule, "adaptive")[kind] - cheaper - Math.max(0.05 * cheaper, 300);
  });
}
