import { z } from "zod";
import { field } from "../src/state/fields.ts";
import { defineWorkflow, type AnyWorkflow } from "../src/workflow/define.ts";
import type { Step } from "../src/workflow/step.ts";
import { defineTool, type Tools } from "../src/workflow/tool.ts";
import { AIRLINE_KINDS, ANY, kindAskedFor, SORT, stepsByKind, type Kinds } from "./context-steps.ts";
import { readSet, readTools, toolsOf, type GivenTool, type Message, type Recorded } from "./context-sets.ts";

type Values = Readonly<Record<string, unknown>>;

/**
 * One recorded set as a workflow of ours. What code keeps in the state is a fixed rule over earlier
 * messages; it never sees the call that comes.
 */
export interface ContextSet {
  readonly name: string;
  readonly conversations: readonly Recorded[];
  /** The agent's instructions in a conversation, as they were recorded. */
  readonly instructions: string;
  readonly tools: readonly GivenTool[];
  readonly workflow: AnyWorkflow;
  /** The kinds of request that have steps of their own; null where one step does all. */
  readonly kinds: Kinds | null;
  /** What code keeps of a message, beside what was kept before it. */
  readonly keep: (state: Values, message: Message, call: CallBefore | null) => Values;
  /** The values in a call's arguments that the prompt should show. */
  readonly valuesOf: (args: Values) => readonly { readonly key: string; readonly value: string }[];
}

/** The call that a tool message answers. */
interface CallBefore {
  readonly name: string;
  readonly args: Values;
}

const said = field(z.array(z.string())).describe("what the user said, latest last");
const SAID_CHARACTERS = 400;

function keepTalk(state: Values, message: Message): Values {
  if (message.role !== "user") return {};
  const before = (state.said ?? []) as readonly string[];
  return { said: [...before, cut(message.content, SAID_CHARACTERS)] };
}

/** What an agent said to the user; some were recorded inside JSON. */
export function spoken(content: string): string {
  const parsed = parse(content);
  const inner = (parsed as { message?: unknown } | null)?.message;
  return typeof inner === "string" ? inner : content;
}

/** A tool's result as a tool would return it. */
export function parse(content: string): unknown {
  if (!/^\s*[[{]/.test(content)) return content;
  try {
    return JSON.parse(content) as unknown;
  } catch {
    return content;
  }
}

function cut(text: string, length: number): string {
  return text.slice(0, length);
}

function isObject(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The latest so many members of an object, the given one last. */
function latest(before: unknown, key: string, value: unknown, most: number): Values {
  const others = Object.entries(isObject(before) ? before : {}).filter(([name]) => name !== key);
  return Object.fromEntries([...others, [key, value] as const].slice(-most));
}

const anything = z.record(z.string(), z.unknown());

function keepAirline(state: Values, message: Message, call: CallBefore | null): Values {
  if (message.role !== "tool" || !call) return keepTalk(state, message);
  const value = parse(message.content);
  if (call.name === "calculate") {
    return { calculations: latest(state.calculations, String(call.args.expression), message.content, 5) };
  }
  if (call.name === "get_user_details" && isObject(value)) return { user: value };
  if (call.name.startsWith("search_") && Array.isArray(value)) {
    const { origin, destination, date } = call.args;
    return { flights: latest(state.flights, `${String(origin)}-${String(destination)} ${String(date)}`, value, 3) };
  }
  if (isObject(value) && typeof value.reservation_id === "string") {
    return { reservations: latest(state.reservations, value.reservation_id, value, 8) };
  }
  return {};
}

function keepRetail(state: Values, message: Message, call: CallBefore | null): Values {
  if (message.role !== "tool" || !call) return keepTalk(state, message);
  const value = parse(message.content);
  if (call.name.startsWith("find_user_id") && typeof value === "string") return { userId: value };
  if (call.name === "list_all_product_types" && isObject(value)) return { productTypes: value };
  if (!isObject(value)) return {};
  if (typeof value.order_id === "string") return { orders: latest(state.orders, value.order_id, value, 8) };
  if (isObject(value.variants)) return { products: latest(state.products, String(value.product_id), value, 5) };
  return typeof value.user_id === "string" ? { user: value } : {};
}

function keepSlots(state: Values, message: Message, call: CallBefore | null): Values {
  if (message.role === "tool" && call) {
    const value = parse(message.content);
    return { found: Array.isArray(value) ? value.slice(0, 3) : value };
  }
  const slots = Object.fromEntries(
    (message.state ?? []).flatMap(({ slot_values }) =>
      Object.entries(slot_values).map(([name, values]) => [name, values[0]] as const),
    ),
  );
  return { ...keepTalk(state, message), ...(message.state ? { slots: { ...(state.slots as Values), ...slots } } : {}) };
}

function keepShell(state: Values, message: Message, call: CallBefore | null): Values {
  if (message.role === "user") return { task: message.content };
  if (message.role !== "tool" || !call) return {};
  const command = cut(String(call.args.command), 300);
  const tried = latest(state.tried, command, cut(message.content.trim(), 400), 8);
  const flags = message.content.match(/picoCTF\{[^}\s]{1,80}\}/g) ?? [];
  return { tried, ...(flags.length > 0 ? { flags: [...new Set(flags)].slice(0, 5) } : {}) };
}

function keepSql(state: Values, message: Message, call: CallBefore | null): Values {
  if (message.role === "user") return { task: message.content };
  if (message.role !== "tool" || !call) return {};
  const command = String(call.args.command);
  const described = /^\s*(?:describe|desc|show columns from|show create table)\s+(\S+)/i.exec(command)?.[1];
  if (described) return { columns: latest(state.columns, described, cut(message.content, 1500), 10) };
  if (/^\s*show tables/i.test(command)) return { tables: cut(message.content, 2000) };
  return { tried: latest(state.tried, cut(command, 400), cut(message.content.trim(), 300), 3) };
}

const FOUND_CHARACTERS = 600;

function keepFound(state: Values, message: Message, call: CallBefore | null): Values {
  if (message.role !== "tool" || !call) return keepTalk(state, message);
  const isLong = message.content.length > FOUND_CHARACTERS;
  const value = isLong ? cut(message.content, FOUND_CHARACTERS) : parse(message.content);
  return { found: latest(state.found, call.name.replaceAll(".", "_"), value, 6) };
}

const FREE_TEXT = new Set(["summary", "thought", "expression"]);

function leaves(args: Values): { key: string; value: string }[] {
  return Object.entries(args).flatMap(([key, value]) => (FREE_TEXT.has(key) ? [] : leavesOf(key, value)));
}

function leavesOf(key: string, value: unknown): { key: string; value: string }[] {
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).flatMap(([name, item]) =>
      leavesOf(Array.isArray(value) ? key : `${key}.${name}`, item),
    );
  }
  return typeof value === "string" || typeof value === "number" ? [{ key, value: String(value) }] : [];
}

/** A command is composed, not copied: its names and numbers are what has to be known. */
function identifiers({ command }: Values): { key: string; value: string }[] {
  const words = String(command).match(/picoCTF\{[^}\s]+\}|[\p{L}_][\p{L}\p{N}_]*(?:\.[\p{L}\p{N}_]+)*|\d{2,}/gu) ?? [];
  return [...new Set(words)].filter((word) => word.length > 2).map((value) => ({ key: "command", value }));
}

interface Definition {
  readonly name: string;
  readonly file: string;
  readonly tools?: string;
  readonly instructions?: string;
  readonly kinds?: Kinds;
  readonly state: Parameters<typeof defineWorkflow>[0]["state"];
  readonly keep: ContextSet["keep"];
  readonly valuesOf: ContextSet["valuesOf"];
}

const DEFINITIONS: readonly Definition[] = [
  {
    name: "tau-airline",
    file: "tau-airline-gpt4o",
    tools: "tools_airline",
    kinds: AIRLINE_KINDS,
    state: {
      user: field(anything),
      reservations: field(anything),
      flights: field(anything),
      calculations: field(anything),
      said,
    },
    keep: keepAirline,
    valuesOf: leaves,
  },
  {
    name: "tau2-retail",
    file: "tau2-retail-toolorchestra",
    tools: "tools_retail",
    state: {
      userId: field(z.string()),
      user: field(anything),
      orders: field(anything),
      products: field(anything),
      productTypes: field(anything),
      said,
    },
    keep: keepRetail,
    valuesOf: leaves,
  },
  {
    name: "intercode-ctf",
    file: "intercode-ctf-gpt4",
    instructions: "Find the flag by shell commands and hand it in with: submit FLAG",
    state: {
      task: field(z.string()),
      tried: field(anything).describe("latest commands and what they gave"),
      flags: field(z.array(z.string())),
    },
    keep: keepShell,
    valuesOf: identifiers,
  },
  {
    name: "sgd-dev",
    file: "sgd-dev",
    instructions: "Help the user by calling services.",
    state: {
      slots: field(anything).describe("what the user wants"),
      found: field(z.union([z.array(anything), anything])),
      said,
    },
    keep: keepSlots,
    valuesOf: leaves,
  },
  {
    name: "bfcl-long-context",
    file: "bfcl-long_context-groundtruth",
    instructions: "Do what the user asks with the tools.",
    state: { found: field(anything).describe("what each tool gave last"), said },
    keep: keepFound,
    valuesOf: leaves,
  },
  {
    name: "intercode-sql",
    file: "intercode-sql-gpt4",
    instructions: "Answer the question by SQL queries and hand in the last one with: submit",
    state: {
      task: field(z.string()),
      tables: field(z.string()),
      columns: field(anything).describe("by table"),
      tried: field(anything).describe("latest queries and what they gave"),
    },
    keep: keepSql,
    valuesOf: identifiers,
  },
];

/** All sets, or those named. */
export function contextSets(names: readonly string[] = []): readonly ContextSet[] {
  return DEFINITIONS.filter(({ name }) => names.length === 0 || names.includes(name)).map(contextSet);
}

/** As one would declare it: what a recorded description says further, the instructions say too, or an error does. */
function firstSentence(text: string): string {
  return /^.*?\.(?=\s|$)/s.exec(text)?.[0] ?? text;
}

function contextSet({ name, file, tools, instructions, kinds, state, keep, valuesOf }: Definition): ContextSet {
  const conversations = readSet(file);
  const given = tools ? readTools(tools) : toolsOf(conversations);
  const recorded = conversations[0]?.messages.find(({ role }) => role === "system")?.content ?? "";
  const told = instructions ?? recorded;
  const declared: Tools = Object.fromEntries(
    given.map(({ name, description, parameters }) => [
      name.replaceAll(".", "_"),
      defineTool({
        description: firstSentence(description),
        effect: "write",
        parameters: z.fromJSONSchema(parameters as never),
        run: () => null,
      }),
    ]),
  );
  const names = Object.keys(declared);
  const { common, steps } = kinds
    ? stepsByKind(told, names, kinds)
    : { common: told, steps: { [ANY]: { tools: names } } };
  const to = [...Object.keys(steps), "done"];
  const all: Readonly<Record<string, Step>> = {
    ...(kinds
      ? { [SORT]: { run: ({ said }) => ({ next: kindAskedFor(kinds, JSON.stringify(said), ANY) ?? ANY }), to } }
      : {}),
    ...Object.fromEntries(Object.entries(steps).map(([step, scoped]) => [step, { ...scoped, to }])),
    done: { final: true },
  };
  const workflow = defineWorkflow({
    name,
    version: 1,
    instructions: common,
    state,
    tools: declared,
    // Code fills the fields in this benchmark; the model writes none.
    input: Object.keys(state),
    initial: kinds ? SORT : ANY,
    steps: all,
  }) as unknown as AnyWorkflow;
  return { name, conversations, instructions: told, tools: given, workflow, kinds: kinds ?? null, keep, valuesOf };
}
