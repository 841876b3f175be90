import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { CLIENT_TASK_ID, CLIENT_TASK_ID_RULE } from "../compile/task-id.ts";
import { isWorkflowError } from "../errors.ts";
import { redact, redactDeep } from "../internal/redact.ts";
import { jsonBytes, shorten } from "../internal/json.ts";
import { TaskDesk, type DeskOptions } from "./desk.ts";

const MAX_DECISION_BYTES = 131_072;

const task = z.string().min(1).max(200).describe("the task's id, as list_tasks gives it");
const decision = z
  .record(z.string(), z.unknown())
  .refine((value) => jsonBytes(value) <= MAX_DECISION_BYTES, `at most ${MAX_DECISION_BYTES} bytes`)
  .describe("as read_task describes it: because, patch, next, and at most one of calls, ask or reply");

const HOW = `Each task is run by a workflow with a table of legal moves. Read a task with read_task: the state it shows wins over any older conversation. Then propose one decision at a time with propose_decision. Nothing but the table moves a task: a refused decision changes nothing, and the refusal says what is open. Tools of the workflow are called through decisions; their results come back with the next brief. Approvals are for people: where one is open, tell the person, and do not go around it.`;

/**
 * An MCP server through which an agent of any make works on tasks: it reads briefs, proposes decisions and answers
 * questions. A refusal is a result with `isError`, so that the agent reads the reason and mends it.
 *
 * @param version of this package.
 */
export function mcpServer(options: DeskOptions, version: string): McpServer {
  const server = new McpServer({ name: "statecard", version }, { instructions: HOW });
  const desk = new TaskDesk({ ...options, clientName: () => server.server.getClientVersion()?.name });

  server.registerTool(
    "list_tasks",
    {
      description: "The tasks there are, the latest changed first: id, workflow, step, status, and what they wait for.",
      inputSchema: z.strictObject({ limit: z.number().int().min(1).max(200).optional().describe("20 unless given") }),
      annotations: { readOnlyHint: true },
    },
    ({ limit }) => answered(() => desk.list(limit)),
  );
  server.registerTool(
    "read_task",
    {
      description:
        "The brief of a task: goal, focus, state, work, last error, open requests and the latest observation; and, where a decision is due, its revision, legal moves, tools and JSON schema.",
      inputSchema: z.strictObject({ task }),
      annotations: { readOnlyHint: true },
    },
    ({ task }) => answered(() => desk.read(task)),
  );
  server.registerTool(
    "propose_decision",
    {
      description:
        "Proposes the task's next decision. It is checked, logged, and committed or refused with the reason; its calls are run. Gives the new brief.",
      inputSchema: z.strictObject({
        task,
        revision: z.number().int().min(0).describe("the revision that you have read"),
        decision,
      }),
    },
    ({ task, revision, decision }) => answered(() => desk.propose(task, revision, decision)),
  );
  server.registerTool(
    "answer_request",
    {
      description: "Answers a question that a task asks. Approvals are not answered here: they are for people.",
      inputSchema: z.strictObject({
        task,
        request: z.string().min(1).max(200).optional().describe("which one, where several are open"),
        answer: z.string().min(1).max(65_536),
      }),
    },
    ({ task, request, answer }) => answered(() => desk.answer(task, request, answer)),
  );
  server.registerTool(
    "continue_task",
    {
      description: "Lets a task go on that was stopped in the middle of calls or code, to its next decision.",
      inputSchema: z.strictObject({ task }),
    },
    ({ task }) => answered(() => desk.goOn(task)),
  );
  server.registerTool(
    "start_task",
    {
      description: "Starts a task of a workflow, and runs it to its first decision.",
      inputSchema: z.strictObject({
        graph: z.string().min(1).max(100).describe("an id of langgraph.json"),
        message: z.string().max(65_536).optional().describe("what is wanted"),
        fields: z.record(z.string(), z.unknown()).optional().describe("input fields of the workflow"),
        task: z
          .string()
          .regex(CLIENT_TASK_ID, CLIENT_TASK_ID_RULE)
          .optional()
          .describe("an id of your own, so that asking again starts no second task"),
      }),
    },
    ({ graph, ...given }) => answered(() => desk.start(graph, given)),
  );
  return server;
}

/** A tool's answer. What is refused or fails is told as such, without stacks and secrets. */
async function answered(work: () => Promise<{ text: string; data: object }>): Promise<CallToolResult> {
  try {
    const { text, data } = await work();
    return { content: [{ type: "text", text: redact(text) }], structuredContent: { ...redactDeep(data) } };
  } catch (error) {
    const code = isWorkflowError(error) ? error.code : "UNEXPECTED";
    const message = redact(error instanceof Error ? error.message : String(error));
    return {
      isError: true,
      content: [{ type: "text", text: `${code}: ${shorten(message, 2000)}` }],
      structuredContent: { error: { code, message: shorten(message, 2000) } },
    };
  }
}
