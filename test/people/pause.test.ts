import { pauseValue } from "../../src/people/pause.ts";
import { requestDigest, type Request } from "../../src/people/requests.ts";
import { expect, test } from "vitest";
import { z } from "zod";

// What each of the existing clients reads from an interrupt, as far as it refuses or breaks without it.

const agentInbox = z.object({
  action_request: z.object({ action: z.string().min(1), args: z.record(z.string(), z.unknown()) }),
  config: z.object({
    allow_ignore: z.boolean(),
    allow_respond: z.boolean(),
    allow_edit: z.boolean(),
    allow_accept: z.boolean(),
  }),
  description: z.string().optional(),
});

/** Agent Inbox reads the newer form too, its first action only, and looks for `arguments`. */
const agentInboxNewer = z.object({
  action_requests: z
    .array(z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()), description: z.string() }))
    .min(1),
});

const agentChat = z
  .object({
    action_requests: z
      .array(
        z.object({
          name: z.string().min(1),
          args: z.record(z.string(), z.unknown()),
          description: z.string().optional(),
        }),
      )
      .min(1),
    review_configs: z.array(
      z.object({
        action_name: z.string(),
        allowed_decisions: z.array(z.enum(["approve", "edit", "reject"])).min(1),
        args_schema: z.record(z.string(), z.unknown()).optional(),
      }),
    ),
  })
  .refine(({ action_requests, review_configs }) =>
    action_requests.every((action, index) => review_configs[index]?.action_name === action.name),
  );

const javascriptMiddleware = z
  .object({
    actionRequests: z
      .array(
        z.object({
          name: z.string().min(1),
          args: z.record(z.string(), z.unknown()),
          description: z.string().optional(),
        }),
      )
      .min(1),
    reviewConfigs: z.array(
      z.object({
        actionName: z.string(),
        allowedDecisions: z.array(z.enum(["approve", "edit", "reject", "respond"])).min(1),
      }),
    ),
  })
  .refine(({ actionRequests, reviewConfigs }) =>
    actionRequests.every((action, index) => reviewConfigs[index]?.actionName === action.name),
  );

function request(kind: Request["kind"], id: string, args?: Request["args"]): Request {
  const content = { kind, question: "pay: amount 5", ...(args ? { tool: "pay", args } : {}) };
  return { id, ...content, digest: requestDigest(content) };
}

const approval = request("approval", "a1.0.0", { amount: 5 });
const second = request("approval", "a1.1.0", { amount: 6 });
const unknown = request("unknown", "u1.0.0", { amount: 5 });
const question = request("question", "q1.0");

test.each([
  ["an approval", [approval]],
  ["two approvals", [approval, second]],
  ["a call whose end is unknown", [unknown]],
])("%s is what Agent Chat UI and langchain's middleware read", (_name, requests) => {
  const value = JSON.parse(JSON.stringify(pauseValue(requests))) as unknown;
  expect(agentChat.safeParse(value).error).toBeUndefined();
  expect(javascriptMiddleware.safeParse(value).error).toBeUndefined();
  expect(agentInboxNewer.safeParse(value).error).toBeUndefined();
});

test("a question is what langchain's middleware reads: an answer in words is all that it allows", () => {
  const value = pauseValue([question]);
  expect(javascriptMiddleware.safeParse(value).error).toBeUndefined();
  expect(value.reviewConfigs).toEqual([{ actionName: "question", allowedDecisions: ["respond"] }]);
  expect(value.question).toBe(question.question);
});

test.each([
  ["an approval can be accepted, edited, and turned down with or without words", approval, [true, true, true, true]],
  ["a question can be answered only", question, [false, true, false, false]],
  [
    "a call whose end is unknown can be confirmed only: to ignore it says nothing",
    unknown,
    [false, false, false, true],
  ],
])("Agent Inbox: %s", (_name, only, [allow_ignore, allow_respond, allow_edit, allow_accept]) => {
  const value = pauseValue([only]);
  expect(agentInbox.safeParse(value).error).toBeUndefined();
  expect(value.config).toEqual({ allow_ignore, allow_respond, allow_edit, allow_accept });
});

test("Agent Inbox shows one action at a time, so several are not in its form", () => {
  expect(agentInbox.safeParse(pauseValue([approval, second])).success).toBe(false);
});

test("every form shows the same arguments, and the ids to answer by", () => {
  const value = pauseValue([approval, second]);
  expect(value.requests).toEqual([approval, second]);
  for (const actions of [value.action_requests, value.actionRequests]) {
    expect(actions.map(({ id, args, arguments: same }) => ({ id, args, same }))).toEqual([
      { id: "a1.0.0", args: { amount: 5 }, same: { amount: 5 } },
      { id: "a1.1.0", args: { amount: 6 }, same: { amount: 6 } },
    ]);
  }
});
