import type { BaseChatModel } from "@langchain/core/language_models/chat_models";

/** Where a model runs, as far as its object tells. */
export interface Destination {
  /** The host that prompts are sent to; the model's class where it names none. */
  readonly name: string;
  /** How a person knows the model: its name and where it is. */
  readonly model: string;
  /** True where prompts do not leave this machine. */
  readonly isLocal: boolean;
}

/** The hosts of providers whose classes hold an address only where it was changed. */
const HOSTS: Readonly<Record<string, string>> = {
  openai: "api.openai.com",
  anthropic: "api.anthropic.com",
  deepseek: "api.deepseek.com",
  mistralai: "api.mistral.ai",
  groq: "api.groq.com",
  cohere: "api.cohere.com",
  google: "generativelanguage.googleapis.com",
  googlegenai: "generativelanguage.googleapis.com",
  googlevertexai: "aiplatform.googleapis.com",
};

/**
 * Says where the prompts of a model go. Only what is known to stay here counts as local: an address of the loopback
 * interface, a model that says `isLocal` of itself, or a host that the caller vouches for.
 *
 * @param localHosts hosts, with their port where they have one, that count as this machine.
 */
export function destinationOf(model: BaseChatModel, localHosts: readonly string[] = []): Destination {
  const type = model._llmType();
  const label = labelOf(model);
  const { isLocal } = model as { readonly isLocal?: unknown };
  if (typeof isLocal === "boolean" && isLocal) return { name: type, model: label, isLocal: true };
  const url = addressOf(model, type);
  const host = url?.host ?? HOSTS[type] ?? type;
  const isHere = url !== null && isLoopback(url.hostname);
  return {
    name: host,
    model: label === host ? host : `${label} at ${host}`,
    isLocal: isHere || localHosts.includes(host),
  };
}

function labelOf(model: BaseChatModel): string {
  const named = model as { readonly model?: unknown; readonly modelName?: unknown };
  const name = named.model ?? named.modelName;
  return typeof name === "string" && name !== "" ? name : model._llmType();
}

/** The address that a model's object holds, in the places where LangChain's classes keep it. */
function addressOf(model: BaseChatModel, type: string): URL | null {
  const holder = model as unknown as Readonly<Record<string, unknown>>;
  const nested = ["clientConfig", "clientOptions", "configuration"].map((name) => {
    const inner = holder[name];
    return typeof inner === "object" && inner !== null ? (inner as { readonly baseURL?: unknown }).baseURL : undefined;
  });
  // OpenAI's client reads the variable by itself.
  const fromEnvironment = type === "openai" ? process.env.OPENAI_BASE_URL : undefined;
  const places = [
    ...nested,
    holder.baseUrl,
    holder.baseURL,
    holder.apiUrl,
    holder.azureOpenAIEndpoint,
    fromEnvironment,
  ];
  const found = places.find((place) => typeof place === "string" && URL.canParse(place));
  return typeof found === "string" ? new URL(found) : null;
}

/** Whether a host name, as a URL holds it, can only be this machine. */
function isLoopback(hostname: string): boolean {
  return (
    hostname === "localhost" ||
    hostname.endsWith(".localhost") ||
    hostname === "[::1]" ||
    /^127(?:\.\d+){3}$/.test(hostname)
  );
}
