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

/** A model's object by its properties, whatever its class declares. */
type Properties = Readonly<Record<string, unknown>>;

/** The hosts of providers whose classes hold an address only where it was changed. */
const HOSTS: Readonly<Record<string, string>> = {
  openai: "api.openai.com",
  anthropic: "api.anthropic.com",
  deepseek: "api.deepseek.com",
  mistral_ai: "api.mistral.ai",
  groq: "api.groq.com",
  cohere: "api.cohere.com",
  google: "generativelanguage.googleapis.com",
  googlegenerativeai: "generativelanguage.googleapis.com",
};

/**
 * Says where the prompts of a model go. Only what is known to stay here counts as local: an address of the loopback
 * interface, a model that says `isLocal` of itself, or a host that the caller vouches for. A model that Ollama runs in
 * its cloud is elsewhere, though its address is here. A model that `wraps` another is where that one is.
 *
 * @param localHosts hosts, with their port where they have one, that count as this machine.
 */
export function destinationOf(model: BaseChatModel, localHosts: readonly string[] = []): Destination {
  const properties = model as unknown as Properties;
  if (isModel(properties.wraps)) return destinationOf(properties.wraps, localHosts);
  const type = model._llmType();
  const label = labelOf(properties, type);
  if (properties.isLocal === true) return { name: type, model: label, isLocal: true };
  const url = addressOf(properties, type);
  const host = url?.host ?? HOSTS[type] ?? type;
  const isHere = (url !== null && isLoopback(url.hostname)) || localHosts.includes(host);
  const name = !isInOllamasCloud(label, type) ? host : isHere ? OLLAMAS_CLOUD : `${OLLAMAS_CLOUD} via ${host}`;
  return {
    name,
    model: label === name ? name : `${label} at ${name}`,
    isLocal: name === host ? isHere : localHosts.includes(name),
  };
}

function isModel(wrapped: unknown): wrapped is BaseChatModel {
  return typeof propertiesOf(wrapped)._llmType === "function";
}

const OLLAMAS_CLOUD = "ollama.com";

/** Whether a model is one that an Ollama server only passes prompts on to, by its name: `gpt-oss:120b-cloud`. */
function isInOllamasCloud(name: string, type: string): boolean {
  // A server of Ollama's is also spoken to as if it were OpenAI's; then the tag tells that it is one.
  return /[:-]cloud$/i.test(name) && (type === "ollama" || name.includes(":"));
}

function labelOf({ azureOpenAIApiDeploymentName, model, modelName }: Properties, type: string): string {
  // Azure goes by the deployment; its class fills in a model's name that means nothing.
  const names = [type === "azure_openai" ? azureOpenAIApiDeploymentName : undefined, model, modelName];
  return names.find((name): name is string => typeof name === "string" && name !== "") ?? type;
}

/** The address that a model's object holds: the first of the places where its class looks for one. */
function addressOf(properties: Properties, type: string): URL | null {
  for (const place of [...ownPlaces(properties, type), ...commonPlaces(properties), ...variables(type)]) {
    const url = addressIn(place);
    if (url) return url;
  }
  return null;
}

/** Where one class keeps its address, in the order in which it takes them. */
function ownPlaces(properties: Properties, type: string): readonly unknown[] {
  switch (type) {
    case "azure_openai": {
      const { azureOpenAIBasePath, azureOpenAIEndpoint, azureOpenAIApiInstanceName: instance } = properties;
      return [azureOpenAIBasePath, azureOpenAIEndpoint, withName(instance, (name) => `${name}.openai.azure.com`)];
    }
    case "anthropic":
      return [properties.apiUrl];
    case "bedrock":
    case "chat_bedrock_converse": {
      const { endpointHost, region } = properties;
      return [endpointHost, withName(region, (name) => `bedrock-runtime.${name}.amazonaws.com`)];
    }
    case "google": {
      const { platform, endpoint } = propertiesOf(properties.connection);
      return platform === "gcp" ? [endpoint] : [];
    }
    default:
      return [];
  }
}

function withName(name: unknown, host: (name: string) => string): string | null {
  return typeof name === "string" && name !== "" ? host(name) : null;
}

function commonPlaces(properties: Properties): readonly unknown[] {
  const { baseUrl, baseURL, apiUrl, serverURL, client } = properties;
  const nested = ["clientConfig", "clientOptions", "configuration"].map(
    (name) => propertiesOf(properties[name]).baseURL,
  );
  return [...nested, baseUrl, baseURL, apiUrl, serverURL, propertiesOf(client).baseURL];
}

/** The variables that the providers' clients read by themselves, each time one is made. */
function variables(type: string): readonly unknown[] {
  if (type === "openai") return [process.env.OPENAI_BASE_URL];
  return type === "anthropic" ? [process.env.ANTHROPIC_BASE_URL] : [];
}

function propertiesOf(value: unknown): Properties {
  return typeof value === "object" && value !== null ? (value as Properties) : {};
}

/** An address as it is configured, with its scheme or without. */
function addressIn(text: unknown): URL | null {
  if (typeof text !== "string" || text.trim() === "") return null;
  const whole = /^[a-z][a-z\d+.-]*:\/\//i.test(text.trim()) ? text : `https://${text}`;
  const url = URL.canParse(whole) ? new URL(whole) : null;
  return url && url.host !== "" ? url : null;
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
