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

/** Makes the value of an interrupt from the requests that are open. Pure. */
export function pauseValue(requests: readonly Request[]): PauseValue {
  const actions = requests.map((request): ActionRequest => {
    const args = { question: request.question };
    return { id: request.id, name: request.kind, args, arguments: args, description: request.question };
  });
  const allowed = ["respond"];
  const [only] = requests.length === 1 ? requests : [];
  return {
    requests,
    action_requests: actions,
    review_configs: requests.map((request) => ({ action_name: request.kind, allowed_decisions: allowed })),
    actionRequests: actions,
    reviewConfigs: requests.map((request) => ({ actionName: request.kind, allowedDecisions: allowed })),
    ...(only
      ? {
          question: only.question,
          description: only.question,
          action_request: { action: only.kind, args: { question: only.question } },
          config: { allow_ignore: false, allow_respond: true, allow_edit: false, allow_accept: false },
        }
      : {}),
  };
}
