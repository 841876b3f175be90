import type { BaseMessage } from "@langchain/core/messages";
import { compile, sqliteStore, type CompileOptions } from "statecard";
import { decideDetective } from "../../graphs/log-detective/rules.ts";
import { detectiveView, logDetective } from "../../graphs/log-detective/workflow.ts";
import { OfflineRules } from "../../graphs/offline-rules.ts";

/** The example's rules, with what they were asked and what they said. */
export class RecordingRules extends OfflineRules {
  readonly seen: { readonly prompt: BaseMessage[]; readonly text: string }[] = [];

  constructor() {
    super(decideDetective);
  }

  override async _generate(messages: BaseMessage[]) {
    const result = await super._generate(messages);
    this.seen.push({ prompt: messages, text: result.generations[0]?.text ?? "" });
    return result;
  }
}

/** The example with logs in some folders, by the rules unless another model is given. */
export function openDetective(logFolders: readonly string[], options: Partial<CompileOptions> = {}) {
  const rules = new RecordingRules();
  const store = sqliteStore(":memory:");
  const graph = compile(logDetective, {
    model: rules,
    store,
    view: detectiveView,
    ...options,
    clients: { logFolders, ...options.clients },
  });
  const run = (message: string, input: { readonly file?: string } = {}, task = "t") =>
    graph.invoke({ message, ...input }, { configurable: { thread_id: task } });
  return { graph, rules, run, store };
}
