import { randomUUID } from "node:crypto";
import type { Checkpoint, Client, Command, ThreadState } from "@langchain/langgraph-sdk";
import type { Execution, PauseValue, Request } from "statecard";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ticket } from "../../graphs/ticket/workflow.ts";
import { describeEveryGraph } from "./every-graph.ts";
import { describeEveryPause } from "./every-pause.ts";
import { isBuilt, recordingClient, startLangGraphServer, type LangGraphServer } from "../support/langgraph-server.ts";

type TicketValues = { ticketType: string | null; priority: string | null; solution: string | null } & {
  execution: Execution;
};
type TicketState = ThreadState<TicketValues>;
interface Paused {
  readonly __interrupt__: readonly { id: string; value: PauseValue }[];
}

const URGENT = "How urgent is it: P1, P2 or P3?";
const START_ROUTER = "I would restart the router and renew the address lease. Shall I start?";
const START_PRINTER = "I would empty the print queue and restart the printer. Shall I start?";

const title = isBuilt
  ? "the local LangGraph server"
  : "the local LangGraph server (skipped: run `npm run build` first)";

describe.skipIf(!isBuilt)(title, () => {
  let server: LangGraphServer;
  let client: Client;

  beforeAll(async () => {
    server = await startLangGraphServer();
    client = server.client;
  });
  afterAll(async () => {
    await server?.stop();
  });

  const run = (threadId: string, input: Record<string, unknown> | null, checkpointId?: string): Promise<unknown> =>
    client.runs.wait(threadId, "ticket", { input, ...(checkpointId === undefined ? {} : { checkpointId }) });
  const command = (threadId: string, sent: Command): Promise<unknown> =>
    client.runs.wait(threadId, "ticket", { command: sent });
  const resume = (threadId: string, reply: unknown): Promise<unknown> => command(threadId, { resume: reply });
  const stateOf = (threadId: string): Promise<TicketState> => client.threads.getState<TicketValues>(threadId);
  const historyOf = (threadId: string): Promise<TicketState[]> =>
    client.threads.getHistory<TicketValues>(threadId, { limit: 100 });

  /** A ticket that was told what is broken and asks how urgent it is. */
  async function askedForPriority(): Promise<{ threadId: string; paused: Paused }> {
    const { thread_id: threadId } = await client.threads.create();
    const paused = (await run(threadId, { message: "network unstable" })) as Paused;
    expect(questionOf(paused)).toBe(URGENT);
    return { threadId, paused };
  }

  async function finishedTicket(): Promise<string> {
    const { threadId } = await askedForPriority();
    await resume(threadId, "P1");
    await resume(threadId, "yes");
    return threadId;
  }

  /** The checkpoint at which the first question had not been asked yet. */
  async function beforeFirstQuestion(threadId: string): Promise<string> {
    const found = (await historyOf(threadId)).find(
      ({ next, values }) => next[0] === "gathering_info" && values.execution.revision === 1,
    );
    return found?.checkpoint.checkpoint_id ?? "";
  }

  describeEveryGraph(() => client);
  describeEveryPause(() => server);

  describe("pauses and answers", () => {
    it("shows the first question in the thread's state, due at the one node that acts", async () => {
      const { threadId } = await askedForPriority();
      const state = await stateOf(threadId);
      expect(state.next).toEqual(["act"]);
      expect(state.tasks.map((task) => [task.name, task.interrupts.length])).toEqual([["act", 1]]);
      expect(state.values.execution).toMatchObject({
        taskId: threadId,
        step: "gathering_info",
        status: "waiting_user",
      });
      expect((await client.threads.get(threadId)).status).toBe("interrupted");
    });

    it("gives the question in the shapes of Agent Chat UI, of langchain's middleware and of Agent Inbox", async () => {
      const { threadId } = await askedForPriority();
      const value = (await stateOf(threadId)).tasks[0]?.interrupts[0]?.value as PauseValue;
      const argumentsShown = { question: URGENT };
      const action = { name: "question", args: argumentsShown, arguments: argumentsShown, description: URGENT };
      expect(value).toMatchObject({
        requests: [{ id: "q2.0", kind: "question", question: URGENT, digest: expect.any(String) as string }],
        action_requests: [action],
        review_configs: [{ action_name: "question", allowed_decisions: ["respond"] }],
        actionRequests: [action],
        reviewConfigs: [{ actionName: "question", allowedDecisions: ["respond"] }],
        action_request: { action: "question", args: argumentsShown },
        config: { allow_ignore: false, allow_respond: true, allow_edit: false, allow_accept: false },
        description: URGENT,
      });
    });

    it.each<[form: string, reply: (interruptId: string, request: Request) => unknown]>([
      ["a plain text", () => "P2"],
      [
        "decisions with a message, as Agent Chat UI sends them",
        () => ({ decisions: [{ type: "respond", message: "P2" }] }),
      ],
      ["a list, as Agent Inbox sends it", () => [{ type: "response", args: "P2" }]],
      ["a map from LangGraph's interrupt id", (interruptId) => ({ [interruptId]: "P2" })],
      ["a map from the request's id", (_interruptId, request) => ({ [request.id]: "P2" })],
    ])("takes %s as the answer", async (_form, reply) => {
      const { threadId, paused } = await askedForPriority();
      const [shown] = paused.__interrupt__;
      const next = await resume(threadId, reply(shown?.id ?? "", requestOf(paused)));
      expect(questionOf(next)).toBe(START_ROUTER);
      const { values } = await stateOf(threadId);
      expect(values.priority).toBe("P2");
      expect(values.execution.observation).toMatchObject({ kind: "answer", question: URGENT, text: "P2" });
    });

    it("takes a new input while a question is open as its answer, to the end", async () => {
      const { threadId } = await askedForPriority();
      expect(questionOf(await run(threadId, { message: "P3" }))).toBe(START_ROUTER);
      const done = (await run(threadId, { message: "yes" })) as TicketValues;
      expect(done).toMatchObject({ priority: "P3", result: "closed, user told" });
      expect(done.execution).toMatchObject({ status: "completed", step: "done" });
      expect((await stateOf(threadId)).next).toEqual([]);
      expect((await client.threads.get(threadId)).status).toBe("idle");
    });

    it("asks what is broken where a ticket is started without a message", async () => {
      const { thread_id: threadId } = await client.threads.create();
      expect(questionOf(await run(threadId, {}))).toBe("What is broken?");
      expect(questionOf(await resume(threadId, "the printer"))).toBe(URGENT);
      expect(questionOf(await resume(threadId, "P2"))).toBe(START_PRINTER);
    });

    it("refuses the opening input sent a second time, and still asks its question", async () => {
      const { threadId } = await askedForPriority();
      await expect(run(threadId, { message: "network unstable" })).rejects.toThrow("TASK_STARTED");
      await expectStillAsking(threadId, { ticketType: "network unstable", priority: null });
    });

    it("refuses an answer to an interrupt that is no longer open", async () => {
      const { threadId, paused } = await askedForPriority();
      const [first] = paused.__interrupt__;
      await resume(threadId, "P1");
      const before = await stateOf(threadId);
      await expect(resume(threadId, { [first?.id ?? ""]: "P2" })).rejects.toThrow("STALE_RESUME");
      expect(await stateOf(threadId)).toEqual(before);
    });

    it("refuses an input to a finished ticket and leaves it as it was", async () => {
      const threadId = await finishedTicket();
      const before = await stateOf(threadId);
      await expect(run(threadId, { message: "thanks" })).rejects.toThrow("TASK_FINISHED");
      await expect(resume(threadId, "thanks")).rejects.toThrow("TASK_FINISHED");
      expect(await stateOf(threadId)).toEqual(before);
    });

    it("refuses a ticket that starts with a value outside the schema, and starts with a right one afterwards", async () => {
      const { thread_id: threadId } = await client.threads.create();
      await expect(run(threadId, { message: "network unstable", priority: "P9" })).rejects.toThrow("INVALID_INPUT");
      expect(questionOf(await run(threadId, { message: "network unstable", priority: "P1", ticketType: "x" }))).toMatch(
        /Shall I start\?$/,
      );
    });
  });

  describe("what Studio reads", () => {
    it("lists every update in the history, the newest first, each based on the one before", async () => {
      const history = await historyOf(await finishedTicket());
      expect(history.map(({ values }) => values.execution.revision)).toEqual([8, 7, 6, 5, 4, 3, 2, 1, 0, 0]);
      expect(history.map(({ next }) => next[0] ?? "end").join(" ")).toBe(
        "end resolving deciding act deciding gathering_info act gathering_info init __start__",
      );
      const ids = history.map(({ checkpoint }) => checkpoint.checkpoint_id);
      expect(history.map(({ parent_checkpoint: parent }) => parent?.checkpoint_id)).toEqual([
        ...ids.slice(1),
        undefined,
      ]);
    });

    it("draws the transition table, with the node that acts and nothing else", async () => {
      const { nodes, edges } = await client.assistants.getGraph(await assistantId());
      const steps = Object.entries(ticket.steps);
      expect(sorted(nodes.map(({ id }) => String(id)))).toEqual(
        sorted(["__start__", ...Object.keys(ticket.steps), "act", "__end__"]),
      );
      const moves = steps.flatMap(([from, step]) =>
        "final" in step
          ? [`${from} > __end__`]
          : [`${from} > act`, `act > ${from}`, ...(step.to ?? []).map((to) => `${from} > ${String(to)}`)],
      );
      expect(sorted(edges.map(({ source, target }) => `${source} > ${target}`))).toEqual(
        sorted(["__start__ > init", ...moves]),
      );
    });

    it("gives schemas with the message and the input fields, and every field and the record as output", async () => {
      const schemas = await client.assistants.getSchemas(await assistantId());
      const properties = schemas.input_schema?.properties as Record<string, object>;
      expect(sorted(Object.keys(properties))).toEqual(["message", "priority", "ticketType"]);
      expect(JSON.stringify(properties.priority)).toContain('["P1","P2","P3"]');
      expect(sorted(Object.keys(schemas.output_schema?.properties ?? {}))).toEqual(
        sorted([...Object.keys(ticket.state), "execution"]),
      );
      expect(Object.keys(schemas.state_schema?.properties ?? {})).toEqual(
        expect.arrayContaining([...Object.keys(ticket.state), "message"]),
      );
    });

    async function assistantId(): Promise<string> {
      const [assistant] = await client.assistants.search({ graphId: "ticket" });
      return assistant?.assistant_id ?? "";
    }
  });

  describe("no way around the table", () => {
    it("lets a person correct a field by hand, which moves nothing and leaves the question open", async () => {
      const { threadId } = await askedForPriority();
      await client.threads.updateState(threadId, { values: { ticketType: "printer jams" } });
      const { values, next } = await stateOf(threadId);
      expect(values.ticketType).toBe("printer jams");
      expect([values.execution.step, values.execution.revision, next]).toEqual(["gathering_info", 2, ["act"]]);
      expect(questionOf(await resume(threadId, "P1"))).toBe(START_PRINTER);
    });

    it("lets an update in the name of another step move nothing and run nothing", async () => {
      const { threadId } = await askedForPriority();
      await client.threads.updateState(threadId, { values: { ticketType: "printer jams" }, asNode: "resolving" });
      expect(await positionOf(threadId)).toEqual(["gathering_info", ["act"]]);
      expect(questionOf(await run(threadId, null))).toBe(URGENT);
      expect(questionOf(await resume(threadId, "P1"))).toBe(START_PRINTER);
    });

    describe("K28: by an update of the state", () => {
      let threadId: string;
      let before: TicketState;
      beforeAll(async () => {
        ({ threadId } = await askedForPriority());
        before = await stateOf(threadId);
      });

      it.each<[what: string, update: { values: unknown; as_node?: string }, status: number, code: string]>([
        ["a value outside the schema", { values: { priority: "P9" } }, 422, "INVALID_UPDATE"],
        ["a value of another type", { values: { ticketType: 7 } }, 422, "INVALID_UPDATE"],
        ["a field that does not exist", { values: { owner: "me" } }, 422, "INVALID_UPDATE"],
        ["the execution record", { values: { execution: { step: "done" } } }, 409, "ILLEGAL_STATE"],
        ["the message", { values: { message: "go on" } }, 409, "ILLEGAL_STATE"],
        ["a right value next to the record", { values: { priority: "P1", execution: {} } }, 409, "ILLEGAL_STATE"],
        ["the end of the graph as its node", { values: null, as_node: "__end__" }, 409, "ILLEGAL_STATE"],
        [
          "the start of the graph as its node",
          { values: { ticketType: "x" }, as_node: "__start__" },
          409,
          "ILLEGAL_STATE",
        ],
        ["a node that does not exist", { values: { ticketType: "x" }, as_node: "nowhere" }, 409, "ILLEGAL_STATE"],
        ["no values, only a step to continue after", { values: null, as_node: "resolving" }, 409, "ILLEGAL_STATE"],
      ])("refuses %s, and the thread is unharmed", async (_what, update, status, code) => {
        const { status: answered, body } = await postJson(`/threads/${threadId}/state`, update);
        expect([answered, body]).toEqual([status, expect.objectContaining({ title: code, status, code })]);
        expect(body.detail).toEqual(expect.stringMatching(/\w+/));
        expect(await stateOf(threadId)).toEqual(before);
      });

      it("still takes the answer to its question afterwards", async () => {
        expect(questionOf(await resume(threadId, "P1"))).toBe(START_ROUTER);
      });
    });

    it("says in the form of problem details what was wrong with an update", async () => {
      const { threadId } = await askedForPriority();
      const { type, body } = await postJson(`/threads/${threadId}/state`, { values: { priority: "P9" } });
      expect(type).toContain("application/problem+json");
      expect(body).toMatchObject({ title: "INVALID_UPDATE", status: 422, details: { field: "priority" } });
      expect(body.detail).toContain("P1");
    });

    describe("by a command", () => {
      let threadId: string;
      let before: TicketState;
      beforeAll(async () => {
        ({ threadId } = await askedForPriority());
        before = await stateOf(threadId);
      });

      it.each<[what: string, sent: Command]>([
        ["goto", { goto: "resolving" }],
        ["goto to a final step", { goto: "done" }],
        ["goto next to an answer", { goto: "resolving", resume: "P1" }],
        ["goto with an input for the node", { goto: { node: "resolving", input: { solution: "x" } } }],
        ["an update", { update: { priority: "P1", execution: null } }],
      ])("refuses %s, and the thread is unharmed", async (_what, sent) => {
        await expect(command(threadId, sent)).rejects.toThrow("ILLEGAL_COMMAND");
        expect(await stateOf(threadId)).toEqual(before);
      });

      it("still takes the answer to its question afterwards", async () => {
        expect(questionOf(await resume(threadId, "P1"))).toBe(START_ROUTER);
      });
    });

    it("refuses a command with goto on a new thread, which can then start as usual", async () => {
      const { thread_id: threadId } = await client.threads.create();
      await expect(command(threadId, { goto: "resolving" })).rejects.toThrow("ILLEGAL_COMMAND");
      expect(questionOf(await run(threadId, { message: "network unstable" }))).toBe(URGENT);
    });
  });

  describe("approvals", () => {
    it("lets nobody approve who cannot be known, whatever name a client claims", async () => {
      const { thread_id: threadId } = await client.threads.create();
      const message = "refund 4900 for order 77, it arrived broken";
      const paused = (await client.runs.wait(threadId, "refund", { input: { message } })) as unknown as Paused;
      expect(paused.__interrupt__[0]?.value.requests).toMatchObject([{ kind: "approval", tool: "pay_back", count: 2 }]);
      const claims = { configurable: { __statecard_person: { name: "ada" }, user: "ada" } };
      for (const config of [{}, claims]) {
        const approve: Command = { resume: { decisions: [{ type: "approve" }] } };
        await expect(client.runs.wait(threadId, "refund", { command: approve, config })).rejects.toThrow(
          "APPROVER_UNKNOWN",
        );
      }
      expect((await stateOf(threadId)).values.execution.pending).toMatchObject({ kind: "calls" });
    });
  });

  describe("one winner", () => {
    it("lets one of several concurrent answers count; the others are refused and change nothing", async () => {
      const { threadId, paused } = await askedForPriority();
      const [shown] = paused.__interrupt__;
      const replies = ["P1", "P2", "P3", "P1", "P2", "P3"];
      const outcomes = await Promise.allSettled(replies.map((reply) => resume(threadId, { [shown?.id ?? ""]: reply })));
      const winners = replies.filter((_reply, index) => outcomes[index]?.status === "fulfilled");
      expect(winners).toHaveLength(1);
      const refusals = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [String(outcome.reason)] : []));
      for (const refusal of refusals) expect(refusal).toMatch(/already running|STALE_RESUME/);
      const { values } = await stateOf(threadId);
      expect(values.priority).toBe(winners[0]);
      expect(values.execution.decisions).toBe(4);
      expect(await positionOf(threadId)).toEqual(["deciding", ["act"]]);
    });

    it("refuses answers that name a question and were queued behind the one that answered it", async () => {
      const { threadId, paused } = await askedForPriority();
      const { id } = requestOf(paused);
      const outcomes = await Promise.allSettled(
        ["P1", "P2", "P3"].map((reply) =>
          client.runs.wait(threadId, "ticket", {
            command: { resume: { [id]: reply } },
            multitaskStrategy: "enqueue",
          }),
        ),
      );
      const refusals = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [String(outcome.reason)] : []));
      expect(refusals).toEqual([expect.stringContaining("STALE_RESUME"), expect.stringContaining("STALE_RESUME")]);
      expect(await positionOf(threadId)).toEqual(["deciding", ["act"]]);
      expect((await stateOf(threadId)).values.execution.decisions).toBe(4);
    });
  });

  describe("forks", () => {
    it("asks again when run from an old checkpoint, and the new question takes another answer", async () => {
      const { threadId } = await askedForPriority();
      await resume(threadId, "P1");
      const asked = (await run(threadId, null, await beforeFirstQuestion(threadId))) as Paused;
      expect([questionOf(asked), requestOf(asked).id]).toEqual([URGENT, "q2.1"]);
      expect(questionOf(await resume(threadId, "P3"))).toBe(START_ROUTER);
      // The server keeps the fork's checkpoint in the thread's config; later runs go on at the head all the same.
      expect(questionOf(await run(threadId, null))).toBe(START_ROUTER);
      const done = (await resume(threadId, "yes")) as TicketValues;
      expect([done.priority, done.execution.status]).toEqual(["P3", "completed"]);
    });

    it("goes on from a field that was changed at an old checkpoint", async () => {
      const { threadId } = await askedForPriority();
      await resume(threadId, "P1");
      const checkpointId = await beforeFirstQuestion(threadId);
      await client.threads.updateState(threadId, { values: { ticketType: "printer jams" }, checkpointId });
      expect(await positionOf(threadId)).toEqual(["gathering_info", ["gathering_info"]]);
      expect(questionOf(await run(threadId, null))).toBe(URGENT);
      expect(questionOf(await resume(threadId, "P2"))).toBe(START_PRINTER);
      const done = (await resume(threadId, "yes")) as TicketValues;
      expect(done).toMatchObject({ ticketType: "printer jams", priority: "P2", result: "closed, user told" });
    });

    it("refuses a new input at an old checkpoint, and goes on at the head", async () => {
      const { threadId } = await askedForPriority();
      const checkpointId = await beforeFirstQuestion(threadId);
      const before = await stateOf(threadId);
      await expect(run(threadId, { message: "P1" }, checkpointId)).rejects.toThrow("FORK_TAKES_NO_INPUT");
      expect(await stateOf(threadId)).toEqual(before);
    });

    it("refuses a changed field at an old checkpoint that the schema does not allow", async () => {
      const { threadId } = await askedForPriority();
      const checkpointId = await beforeFirstQuestion(threadId);
      const before = await stateOf(threadId);
      const update = client.threads.updateState(threadId, { values: { priority: "P9" }, checkpointId });
      await expect(update).rejects.toMatchObject({ status: 422 });
      expect(await stateOf(threadId)).toEqual(before);
    });
  });

  describe("together with the command line", () => {
    it("lets the command line finish a ticket that was started here, and shows the end", async () => {
      const { threadId } = await askedForPriority();
      const waiting = await server.command("resume", threadId, "--answer", "P2", "--db", server.database);
      expect([waiting.code, waiting.stderr]).toEqual([10, ""]);
      expect(waiting.stdout).toContain(START_ROUTER);
      const done = await server.command("resume", threadId, "--answer", "yes", "--db", server.database);
      expect([done.code, done.stderr]).toEqual([0, ""]);
      const { values, next } = await stateOf(threadId);
      expect([values.priority, values.execution.status, next]).toEqual(["P2", "completed", []]);
      await expect(resume(threadId, "again")).rejects.toThrow("TASK_FINISHED");
    });

    it("shows and finishes a ticket that the command line has started", async () => {
      const threadId = randomUUID();
      const options = ["--task", threadId, "--message", "the printer jams", "--db", server.database];
      expect((await server.command("run", "ticket", ...options)).code).toBe(10);
      await client.threads.create({ threadId, graphId: "ticket", ifExists: "do_nothing" });
      const state = await stateOf(threadId);
      expect(state.tasks[0]?.interrupts).toHaveLength(1);
      expect(await positionOf(threadId)).toEqual(["gathering_info", ["act"]]);
      expect(questionOf(await resume(threadId, "P3"))).toBe(START_PRINTER);
      const done = (await resume(threadId, "yes")) as TicketValues;
      expect([done.priority, done.execution.status]).toEqual(["P3", "completed"]);
      const shown = await server.command("show", threadId, "--json", "--db", server.database);
      expect(JSON.parse(shown.stdout)).toMatchObject({ taskId: threadId, status: "completed", step: "done" });
    });
  });

  describe("streams", () => {
    it("carries the text of a reply, and nothing of the decision around it, to clients that show messages", async () => {
      const { threadId } = await askedForPriority();
      await resume(threadId, "P1");
      const texts: string[] = [];
      const streamed = client.runs.stream(threadId, "ticket", {
        command: { resume: "yes" },
        streamMode: ["messages-tuple"],
      });
      for await (const { event, data } of streamed) if (event === "messages") texts.push(String(data[0].content));
      expect(texts.join("")).toBe("Done: restart the router and renew the address lease. The ticket is closed.");
    });

    it("never lets a key of the runtime's own leave over HTTP", async () => {
      const { client: recorded, received } = recordingClient(server.url);
      const { thread_id: threadId } = await recorded.threads.create();
      const streamMode = [
        "values",
        "updates",
        "custom",
        "messages-tuple",
        "tasks",
        "checkpoints",
        "debug",
        "events",
      ] as const;
      const options = { streamMode: [...streamMode] };
      for (const sent of [{ input: { message: "network unstable" } }, { command: { resume: "P1" } }]) {
        for await (const _chunk of recorded.runs.stream(threadId, "ticket", { ...sent, ...options }));
      }
      const updated = await recorded.threads.updateState(threadId, { values: { ticketType: "wifi" } });
      await recorded.threads.getState(threadId);
      await recorded.threads.getState(threadId, (updated as { checkpoint?: Checkpoint }).checkpoint);
      const history = await recorded.threads.getHistory<TicketValues>(threadId);
      const first = history.find(({ values }) => values.execution.revision === 1);
      const checkpointId = first?.checkpoint.checkpoint_id ?? "";
      await recorded.threads.updateState(threadId, { values: { ticketType: "printer" }, checkpointId });
      await recorded.runs.wait(threadId, "ticket", { input: null });
      await recorded.runs.wait(threadId, "ticket", { input: {}, checkpointId }).catch(() => null);
      await recorded.threads.updateState(threadId, { values: { priority: "P9" } }).catch(() => null);
      await recorded.threads.get(threadId);
      await recorded.threads.search();
      await recorded.runs.list(threadId);
      const bodies = await received();
      expect(bodies.length).toBeGreaterThan(12);
      expect(bodies.join("\n")).toContain(URGENT);
      expect(bodies.filter((body) => body.includes("__statecard"))).toEqual([]);
    });
  });

  describe("the HTTP API beside its own routes (http.app)", () => {
    it("starts a task that the server's threads show and finish, and answers one that a thread has started", async () => {
      // The server's threads have UUIDs.
      const threadId = randomUUID();
      const started = await postJson("/tasks?wait=20", {
        graph: "ticket",
        message: "network unstable",
        taskId: threadId,
      });
      expect(started).toMatchObject({ status: 200, body: { taskId: threadId, status: "waiting_user" } });
      await client.threads.create({ threadId, graphId: "ticket", ifExists: "do_nothing" });
      expect(questionOf(await resume(threadId, "P1"))).toBe(START_ROUTER);
      const other = (await askedForPriority()).threadId;
      const answered = await postJson(`/tasks/${other}/resume?wait=20`, { answer: "P2" });
      expect(answered.body).toMatchObject({ status: "waiting_user", state: { priority: "P2" } });
      const done = await postJson(`/tasks/${threadId}/resume?wait=20`, { answer: "yes" });
      expect(done.body).toMatchObject({ status: "completed" });
      const stream = await fetch(`${server.url}/tasks/${threadId}/events`);
      expect(await stream.text()).toContain('event: end\ndata: {"status":"completed"}');
    });

    it("leaves the server's own routes alone, and refuses in its own form", async () => {
      expect((await fetch(`${server.url}/ok`)).status).toBe(200);
      expect((await fetch(`${server.url}/info`)).status).toBe(200);
      const refused = await postJson("/tasks", { graph: "nope" });
      expect(refused).toMatchObject({ status: 404, type: "application/problem+json", body: { code: "UNKNOWN_GRAPH" } });
      const page = await fetch(`${server.url}/tasks`, { headers: { origin: "https://evil.example" } });
      expect(page.status).toBe(403);
    });
  });

  async function positionOf(threadId: string): Promise<[step: string, next: readonly string[]]> {
    const { values, next } = await stateOf(threadId);
    return [values.execution.step, next];
  }

  async function expectStillAsking(threadId: string, fields: Partial<TicketValues>): Promise<void> {
    const state = await stateOf(threadId);
    expect(state.values).toMatchObject(fields);
    expect(state.tasks[0]?.interrupts[0]?.value).toMatchObject({ question: URGENT });
  }

  async function postJson(
    path: string,
    sent: object,
  ): Promise<{ status: number; type: string; body: Record<string, unknown> }> {
    const response = await fetch(server.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(sent),
    });
    const type = response.headers.get("content-type") ?? "";
    return { status: response.status, type, body: (await response.json()) as Record<string, unknown> };
  }
});

function questionOf(result: unknown): string | undefined {
  return (result as Partial<Paused>).__interrupt__?.[0]?.value.question;
}

function sorted(names: readonly string[]): string[] {
  return names.toSorted((a, b) => a.localeCompare(b));
}

function requestOf(paused: Paused): Request {
  const request = paused.__interrupt__[0]?.value.requests[0];
  if (!request) throw new Error("nothing is asked");
  return request;
}
