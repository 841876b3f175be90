import { ScriptedModel, type ScriptedAnswer } from "../../src/testing/scripted-model.ts";

/** A scripted model that says, as ChatOpenAI does, that its prompts go to another machine. */
export class RemoteModel extends ScriptedModel {
  override readonly isLocal: boolean = false;
  readonly model: string = "large-1";
  readonly clientConfig: { readonly baseURL: string };

  constructor(script: readonly ScriptedAnswer[], baseURL = "https://models.example/v1") {
    super(script);
    this.clientConfig = { baseURL };
  }
}
