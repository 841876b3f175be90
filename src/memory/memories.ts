import { WorkflowError } from "../errors.ts";
import type { State } from "../state/fields.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import { cleanUpOnce } from "./clean-up.ts";
import { Memory } from "./memory.ts";
import type { MemoryStore } from "./store.ts";
import type { Summarise } from "./summarise.ts";

export interface MemoriesOptions {
  readonly store: MemoryStore;
  /** The user whose memory it is, where it is always the same one. */
  readonly user?: string;
  /** Else the state field that names the task's user. No step may let the model write it. */
  readonly userField?: string;
  /** The agent whose memory it is; the user's agents share one unless set. */
  readonly agent?: string;
  /**
   * True where memories hold nothing that outsiders may have written. Unless it is set, what a model does after it
   * has seen a memory counts as influenced by text from outside, as after any result of a tool.
   */
  readonly trusted?: boolean;
  /** One sentence about a text that is too long to be kept: `summariseWith(model)`. */
  readonly summarise?: Summarise;
}

/** A task, as tools and views know it. */
export interface MemoryTask {
  readonly taskId: string;
  readonly state: State;
}

/**
 * The memories of the users or agents of a workflow. Whose memory a task sees is decided by code alone, from what is
 * declared here and the task's state, and never by what a model says.
 *
 * @example
 * const memories = new Memories({ store: store.memory(), userField: "customer", agent: "support" });
 * defineWorkflow({ …, tools: { ...memoryTools(memories) } });
 */
export class Memories {
  private readonly options: MemoriesOptions;

  /** @throws INVALID_OPTIONS where it is not said whose memories they are. */
  constructor(options: MemoriesOptions) {
    const { user, userField, agent } = options;
    if (user !== undefined && userField !== undefined) {
      throw new WorkflowError("INVALID_OPTIONS", "memories take user or userField, not both");
    }
    if (user === undefined && userField === undefined && agent === undefined) {
      throw new WorkflowError("INVALID_OPTIONS", "memories need a user, a userField or an agent: whose are they?");
    }
    this.options = options;
  }

  /** Whether memories hold nothing that outsiders may have written. */
  get isTrusted(): boolean {
    return this.options.trusted === true;
  }

  /** The memory that a task may use; null while its user is not known. */
  of({ state }: MemoryTask): Memory | null {
    const { store, user, userField, agent, summarise } = this.options;
    const named = userField === undefined ? user : nameIn(state, userField);
    // Never another's instead, and never one that all unknown users share.
    if (userField !== undefined && named === undefined) return null;
    const owner = { ...(named === undefined ? {} : { user: named }), ...(agent === undefined ? {} : { agent }) };
    return new Memory(store, owner, summarise);
  }

  /**
   * Deletes from the store, of all owners, what has expired and what was passing, at most once a day (UTC). The store
   * holds the day, so that of many processes one does it.
   *
   * @returns how many were deleted; null where that was done already.
   */
  cleanUpDaily(): Promise<number | null> {
    return cleanUpOnce(this.options.store);
  }

  /** Whether the tasks of a workflow can say whose memory they use. Pure. */
  canServe(workflow: AnyWorkflow): boolean {
    const { userField } = this.options;
    return userField === undefined || Object.hasOwn(workflow.state, userField);
  }

  /** What in a workflow would let a model choose whose memory it sees; null where nothing does. Pure. */
  faultIn(workflow: AnyWorkflow): string | null {
    const { userField } = this.options;
    if (userField === undefined) return null;
    if (!this.canServe(workflow)) {
      return `memories belong to the user in the field ${userField}, which workflow ${workflow.name} does not have`;
    }
    const writer = Object.entries(workflow.steps).find(([, step]) => step.writes?.includes(userField));
    return writer
      ? `memories belong to the user in the field ${userField}, but step ${writer[0]} lets the model write it; take it out of the step's writes`
      : null;
  }
}

function nameIn(state: State, field: string): string | undefined {
  const value = Object.hasOwn(state, field) ? state[field] : undefined;
  return (typeof value === "string" && value !== "") || typeof value === "number" ? String(value) : undefined;
}
