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

/** What `statecard memory` can do. */
export const MEMORY_ACTIONS = ["list", "search", "forget", "clean"] as const;
export type MemoryAction = (typeof MEMORY_ACTIONS)[number];

export interface MemoryCommandOptions extends CommonOptions {
  readonly user?: string;
  readonly agent?: string;
  /** How many memories to show. */
  readonly limit?: string;
}

/** @throws USAGE for options that cannot work. */
export function checkOptions(options: CommonOptions & { readonly chat?: boolean }): void {
  if (options.db !== undefined && options.db.trim() === "") throw usage("--db is empty; name a file, or leave it out");
  if (options.db === ":memory:") throw usage("--db :memory: would be gone at once; name a file");
  if (options.chat && options.json) throw usage("--chat converses with a person and --json with a program; choose one");
}

/** What the next command about the same task has to repeat. */
export function sameTask({ db, graph }: CommonOptions): SameTask {
  return { ...(db === undefined ? {} : { db }), ...(graph === undefined ? {} : { graph }) };
}
