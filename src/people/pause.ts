import type { Request } from "./requests.ts";

interface ActionRequest {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly description: string;
}

/**
 * The value of an interrupt: our own list, and the fields that the existing chat UIs and inboxes
 * read. Agent Chat UI and langchain's Python middleware read snake_case, langchain's JS middleware
 * camelCase; Agent Inbox reads a single `action_request` with `config`.
 */
export interface PauseValue {
  readonly requests: readonly Request[];
  readonly action_requests: readonly ActionRequest[];
  readonly review_configs: readonly { action_name: string; allowed_decisions: readonly string[] }[];
  readonly actionRequests: readonly ActionRequest[];
  readonly reviewConfigs: readonly { actionName: string; allowedDecisions: readonly string[] }[];
  readonly question?: string;
  readonly description?: string;
  readonly action_request?: { action: string; args: Readonly<Record<string, unknown>> };
  readonly config?: { allow_ignore: boolean; allow_respond: boolean; allow_edit: boolean; allow_accept: boolean };
}

/** What a person may do about a request, in the words of langchain's middleware. */
function allowedDecisions(request: Request): readonly string[] {
  if (request.kind === "question") return ["respond"];
  return request.kind === "approval" ? ["approve", "edit", "reject"] : ["approve", "reject"];
}

/** Makes the value of an interrupt from the requests that are open. Pure. */
export function pauseValue(requests: readonly Request[]): PauseValue {
  const actions = requests.map((request): ActionRequest => {
    const args = request.args ?? { question: request.question };
    return { id: request.id, name: nameOf(request), args, arguments: args, description: request.question };
  });
  const [only] = requests.length === 1 ? requests : [];
  return {
    requests,
    action_requests: actions,
    review_configs: requests.map((request) => ({
      action_name: nameOf(request),
      allowed_decisions: allowedDecisions(request),
    })),
    actionRequests: actions,
    reviewConfigs: requests.map((request) => ({
      actionName: nameOf(request),
      allowedDecisions: allowedDecisions(request),
    })),
    ...(only ? single(only) : {}),
  };
}

/** The fields that Agent Inbox reads, and the question for simple clients. */
function single(request: Request) {
  const asksText = request.kind === "question";
  return {
    question: request.question,
    description: request.question,
    action_request: { action: nameOf(request), args: request.args ?? { question: request.question } },
    config: {
      // Agent Inbox knows no other way to say no: to ignore an approval, or to answer it in words, rejects it.
      allow_ignore: request.kind === "approval",
      allow_respond: request.kind !== "unknown",
      allow_edit: request.kind === "approval",
      allow_accept: !asksText,
    },
  };
}

function nameOf(request: Request): string {
  return request.tool ?? request.kind;
}
