import type { TimeLimits } from "../batch/attempt.ts";
import { usage } from "./exit.ts";
import type { SameTask } from "./hints.ts";

/** The options of every command. */
export interface CommonOptions {
  readonly db?: string;
  readonly json?: boolean;
  readonly graph?: string;
}

/** What `statecard token` can do. */
export const TOKEN_ACTIONS = ["create", "list", "revoke"] as const;
export type TokenAction = (typeof TOKEN_ACTIONS)[number];

/** What `statecard consent` can do. */
export const CONSENT_ACTIONS = ["list", "allow", "withhold", "withdraw"] as const;
export type ConsentAction = (typeof CONSENT_ACTIONS)[number];

export interface ConsentCommandOptions extends CommonOptions {
  /** A model's host, or `agents`; those of the graph's models unless set. */
  readonly to?: string;
  /** For whose tasks it holds; for those of no tenant unless set. */
  readonly tenant?: string;
}

/** What `statecard memory` can do. */
export const MEMORY_ACTIONS = ["list", "search", "forget", "clean"] as const;
export type MemoryAction = (typeof MEMORY_ACTIONS)[number];

/** How a batch can be reported. */
export const REPORTS = ["table", "json", "csv"] as const;
export type ReportForm = (typeof REPORTS)[number];

export interface MemoryCommandOptions extends CommonOptions {
  readonly user?: string;
  readonly agent?: string;
  /** How many memories to show. */
  readonly limit?: string;
}

/** @throws USAGE for options that cannot work. */
export function checkOptions(options: CommonOptions & { readonly chat?: boolean }): void {
  if (options.db !== undefined && options.db.trim() === "") throw usage("--db is empty; name a file, or leave it out");
  const named = options.db ?? process.env.STATECARD_DB;
  if (named === ":memory:")
    throw usage(`${options.db ? "--db" : "STATECARD_DB"} :memory: would be gone at once; name a file`);
  if (options.chat && options.json) throw usage("--chat converses with a person and --json with a program; choose one");
}

/** What the next command about the same task has to repeat. */
export function sameTask({ db, graph }: CommonOptions): SameTask {
  return { ...(db === undefined ? {} : { db }), ...(graph === undefined ? {} : { graph }) };
}

/** @throws USAGE for what is no whole number between the limits. */
export function wholeNumber(option: string, text: string | undefined, least: number, most: number): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw usage(`${option} is a whole number from ${least} to ${most}, not "${text}"`);
}

/** How long a task may take, as batch, serve and worker are told. */
export interface TimeLimitOptions {
  readonly stepTimeout?: string;
  readonly taskTimeout?: string;
}

/** @throws USAGE. */
export function timeLimitsIn({ stepTimeout, taskTimeout }: TimeLimitOptions): TimeLimits {
  const stepMs = milliseconds("--step-timeout", stepTimeout);
  const taskMs = milliseconds("--task-timeout", taskTimeout);
  return { ...(stepMs === undefined ? {} : { stepMs }), ...(taskMs === undefined ? {} : { taskMs }) };
}

const LONGEST_S = 1_000_000;

/**
 * A number of seconds in milliseconds.
 *
 * @throws USAGE.
 */
export function milliseconds(option: string, text: string | undefined): number | undefined {
  const seconds = wholeNumber(option, text, 1, LONGEST_S);
  return seconds === undefined ? undefined : seconds * 1000;
}
