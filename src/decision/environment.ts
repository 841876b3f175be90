import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { WorkflowError } from "../errors.ts";

const TIMEOUT_MS = 60_000;
const MAX_RETRIES = 2;
const DEFAULT_MODEL = "gpt-5-mini";

/**
 * The model that the environment asks for: ChatOpenAI with OPENAI_API_KEY, and OPENAI_BASE_URL and
 * OPENAI_MODEL where they are set, with a time limit of 60 s and 2 retries (ChatOpenAI itself has no
 * time limit and retries six times).
 *
 * @returns the model, or null where no key is set.
 * @throws INVALID_ENVIRONMENT for a value that cannot work, or where @langchain/openai is missing.
 */
export async function modelFromEnvironment(
  environment: NodeJS.ProcessEnv = process.env,
): Promise<BaseChatModel | null> {
  const key = environment.OPENAI_API_KEY;
  if (key === undefined || key === "") return null;
  if (key !== key.trim() || /\s/.test(key)) {
    throw new WorkflowError(
      "INVALID_ENVIRONMENT",
      "OPENAI_API_KEY contains white space; set it without, or unset it to use the offline rules",
    );
  }
  const baseURL = environment.OPENAI_BASE_URL || undefined;
  if (baseURL !== undefined && !isHttpUrl(baseURL)) {
    throw new WorkflowError(
      "INVALID_ENVIRONMENT",
      `OPENAI_BASE_URL is no http(s) address: "${baseURL}"; example: http://127.0.0.1:8080/v1`,
    );
  }
  const { ChatOpenAI } = await loadOpenAI();
  return new ChatOpenAI({
    apiKey: key,
    model: environment.OPENAI_MODEL || DEFAULT_MODEL,
    timeout: TIMEOUT_MS,
    maxRetries: MAX_RETRIES,
    ...(baseURL ? { configuration: { baseURL } } : {}),
  });
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

async function loadOpenAI(): Promise<typeof import("@langchain/openai")> {
  try {
    return await import("@langchain/openai");
  } catch (error) {
    throw new WorkflowError(
      "INVALID_ENVIRONMENT",
      "OPENAI_API_KEY is set, but @langchain/openai is not installed: npm install @langchain/openai",
      { cause: error },
    );
  }
}
