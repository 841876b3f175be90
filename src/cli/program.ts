import { readFileSync } from "node:fs";
import { Argument, Command as Program, Option } from "commander";
import { EXIT } from "./exit.ts";
import {
  checkOptions,
  CONSENT_ACTIONS,
  MEMORY_ACTIONS,
  REPORTS,
  TOKEN_ACTIONS,
  type CommonOptions,
  type ConsentAction,
  type ConsentCommandOptions,
  type MemoryAction,
  type MemoryCommandOptions,
  type TokenAction,
} from "./options.ts";
import type { TasksCommandOptions } from "./look.ts";
import { reportError } from "./report-error.ts";

/** Loads a command's code when it is called, so that `--help` and wrong usage answer at once. */
type Action = () => Promise<number>;

/** For options that may be repeated. */
const collect = (value: string, all: readonly string[] = []) => [...all, value];

function buildProgram(onAction: (options: CommonOptions, action: Action) => void): Program {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  const program = new Program("statecard");
  program
    .description(
      "Guarded workflows with explicit state. GRAPH is an id of langgraph.json in this folder, or a file (TypeScript too).",
    )
    .version(version)
    .showHelpAfterError("(--help tells what the command takes)")
    .addHelpText(
      "after",
      "\nExit codes: 0 finished or shown, 10 waiting for a person, 1 the task failed, 2 usage, 3 refused, 130 interrupted.\nEnvironment: STATECARD_DB, STATECARD_QUEUE, STATECARD_TOKEN, OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL.",
    );
  const command = (name: string, description: string) =>
    program
      .command(name)
      .description(description)
      .option("--db <database>", "a file, or postgres://… (STATECARD_DB, else .statecard/tasks.db)")
      .option("--json", "one JSON document on standard output");

  command("run <graph>", "start a task and run it to its first pause or its end")
    .option("--task <id>", "the task's id; one is made up otherwise")
    .option("--message <text>", "what the user says first; without it the task asks")
    .option("--set <field=value>", "set an input field; may be repeated", collect, [] as string[])
    .option("--chat", "converse until the task ends")
    .addHelpText("after", '\nExample: statecard run ticket --message "network unstable" --set priority=P1')
    .action((graph: string, options: CommonOptions) =>
      onAction(options, async () => (await import("./run.ts")).runCommand(graph, options)),
    );
  command("resume <task>", "answer what a task asks, or let it go on after a stop or failure")
    .option("--answer <text>", "the answer to its question")
    .option("--approve", "let the call run that it asks about")
    .option("--reject <reason>", "do not let it run")
    .option("--edit <json>", "change arguments of the call; it is checked again")
    .option("--request <id>", "which request, where several are open")
    .option("--as <name>", "answer as this person, whose token is in STATECARD_TOKEN or typed when asked")
    .option("--graph <graph>", "the task's graph, where langgraph.json does not have it")
    .option("--chat", "converse until the task ends")
    .addHelpText(
      "after",
      `\nExample: statecard resume ticket-k3f9 --answer "P1"\n         statecard resume refund-02 --edit '{"amount": 50}'`,
    )
    .action((task: string, options: CommonOptions) =>
      onAction(options, async () => (await import("./run.ts")).resumeCommand(task, options)),
    );
  command("cancel <task>", "end a task for good, whoever runs it; what was done stays done")
    .option("--reason <text>", "why; it is logged")
    .option("--graph <graph>", "the task's graph, where langgraph.json does not have it")
    .addHelpText("after", '\nExample: statecard cancel ticket-k3f9 --reason "asked twice"')
    .action((task: string, options: CommonOptions) =>
      onAction(options, async () => (await import("./cancel.ts")).cancelCommand(task, options)),
    );
  command("serve", "the HTTP API for the graphs of langgraph.json: create, read, answer, cancel, follow tasks")
    .option("--port <number>", "8123 unless set; 0 for any that is free")
    .option("--host <address>", "127.0.0.1 unless set; others need tokens (statecard token create NAME)")
    .option("--graphs <ids>", "only these, with commas between them")
    .option("--concurrency <number>", "how many tasks run at once; 16 unless set")
    .option("--rate <number>", "how many requests a second one person has; 100 unless set")
    .option("--step-timeout <seconds>", "the longest that a task may go without committing a step; no limit unless set")
    .option("--task-timeout <seconds>", "the longest that a task may run at a stretch; no limit unless set")
    .option("--no-sweep", "leave tasks alone that a server has left unfinished")
    .addHelpText("after", "\nExample: statecard serve --port 8123\nThe API describes itself at /openapi.json.")
    .action((options: CommonOptions) =>
      onAction(options, async () => (await import("./serve.ts")).serveCommand(options)),
    );
  command("batch <file>", "many tasks, one JSON object a line: {id, message, input}; run it again to go on")
    .option("--graph <graph>", "the graph that all of them are for")
    .option("--workers <number>", "how many tasks run at once in this process; 4 unless set")
    .option("--attempts <number>", "how often a task is run at most; 3 unless set")
    .option("--backoff <ms>", "the wait before a second attempt, doubled before each further one; 1000 unless set")
    .option("--step-timeout <seconds>", "the longest that a task may go without committing a step")
    .option("--task-timeout <seconds>", "the longest that one attempt may take")
    .option("--review", "publish no result before a person has approved it (statecard review)")
    .addOption(new Option("--report <form>", "by the ending of --out unless set, else a table").choices(REPORTS))
    .option("--out <file>", "where the report goes; standard output unless set")
    .option("--compare <views>", "run every task under each of these views, such as history,state")
    .addHelpText(
      "after",
      "\nExample: statecard batch reviews.jsonl --graph code-review --workers 8\nExit codes: 0 all through, 10 some wait for a person, 1 some failed or are no tasks.",
    )
    .action((file: string, options: CommonOptions) =>
      onAction(options, async () => (await import("./batch.ts")).batchCommand(file, options)),
    );
  command("review <file>", "the results of a batch that wait for a person before they are published")
    .option("--graph <graph>", "the graph of the batch")
    .option("--approve <id>", "publish this result, or all that wait; may be repeated", collect)
    .option("--reject <id>", "do not publish it; may be repeated", collect)
    .option("--reason <text>", "why not")
    .option("--as <name>", "decide as this person, whose token is in STATECARD_TOKEN or typed when asked")
    .addHelpText("after", "\nExample: statecard review reviews.jsonl --graph code-review --approve all --as ada")
    .action((file: string, options: CommonOptions) =>
      onAction(options, async () => (await import("./batch-review.ts")).reviewCommand(file, options)),
    );
  command("worker", "run the tasks that others submit, on any number of machines over one database")
    .option("--graphs <graphs>", "only these, with commas between them; all of langgraph.json unless set")
    .option("--concurrency <number>", "how many tasks of each graph run at once here; 16 unless set")
    .option("--queue <location>", "where the jobs are: redis://…, postgres://… (STATECARD_QUEUE, else the database)")
    .option("--limit <limit>", "over all workers: GRAPH=10,100/min; for a tenant @NAME=…; may be repeated", collect)
    .option("--step-timeout <seconds>", "the longest between two commits of a task")
    .option("--task-timeout <seconds>", "the longest for one attempt at a task")
    .option("--stall-interval <seconds>", "a dead worker's tasks are taken over within twice this; 40 unless set")
    .option("--keep-ended <days>", "remove tasks that ended so long ago, daily; kept for ever unless set")
    .addHelpText(
      "after",
      "\nExample: statecard worker --db postgres://app@db/tasks --limit ticket=50,600/min --limit @acme=5",
    )
    .action((options: CommonOptions) =>
      onAction(options, async () => (await import("./worker.ts")).workerCommand(options)),
    );
  command("submit <graph> [file]", "hand tasks over to the workers: one, or each line of a JSONL file")
    .option("--task <id>", "the task's id; one is made up otherwise")
    .option("--message <text>", "what the user says first")
    .option("--set <field=value>", "set an input field; may be repeated", collect, [] as string[])
    .option("--attempts <number>", "how often a task that fails is run at most; 3 unless set")
    .option("--queue <location>", "where the jobs are: redis://…, postgres://… (STATECARD_QUEUE, else the database)")
    .addHelpText("after", "\nExample: statecard submit ticket tickets.jsonl --db postgres://app@db/tasks")
    .action((graph: string, file: string | undefined, options: CommonOptions) =>
      onAction(options, async () => (await import("./submit.ts")).submitCommand(graph, file, options)),
    );
  command("dev", "workers, a database and a prompt on this machine, to try them")
    .option("--distributed", "start the workers")
    .option("--workers <number>", "how many processes; 2 unless set")
    .option("--graphs <graphs>", "only these, with commas between them; all of langgraph.json unless set")
    .option("--queue <location>", "where the jobs are, as for worker")
    .addHelpText("after", "\nWithout --db, a PostgreSQL of its own is started in a temporary folder.")
    .action((options: CommonOptions) => onAction(options, async () => (await import("./dev.ts")).devCommand(options)));
  command("show <task>", "where a task stands").action((task: string, options: CommonOptions) =>
    onAction(options, async () => (await import("./look.ts")).showCommand(task, options)),
  );
  command("brief <task>", "the hand-off of a task, for a new session or another agent")
    .option("--graph <graph>", "the task's graph, where langgraph.json does not have it")
    .action((task: string, options: CommonOptions) =>
      onAction(options, async () => (await import("./brief.ts")).briefCommand(task, options)),
    );
  command(
    "doctor <task>",
    "what troubles a task, with the evidence and what to do about it; ends with 3 where something does",
  )
    .option("--graph <graph>", "the task's graph, where langgraph.json does not have it")
    .action((task: string, options: CommonOptions) =>
      onAction(options, async () => (await import("./doctor.ts")).doctorCommand(task, options)),
    );
  command("mcp", "an MCP server on standard input and output, through which agents of any make work on tasks")
    .option("--agent <name>", "the agent's name in the log; what the client calls itself unless set")
    .addHelpText("after", "\nExample: claude mcp add statecard -- npx statecard mcp --db .statecard/tasks.db")
    .action((options: CommonOptions) => onAction(options, async () => (await import("./mcp.ts")).mcpCommand(options)));
  command("history <task>", "what happened to a task, line by line").action((task: string, options: CommonOptions) =>
    onAction(options, async () => (await import("./look.ts")).historyCommand(task, options)),
  );
  command("tasks", "the tasks of the database, the latest changed first")
    .option("--workflow <name>", "only those of this workflow")
    .option("--status <status>", "only those that stand so: waiting_user, running, failed, completed, …")
    .option("--limit <number>", "how many to show; 100 unless set")
    .action((options: TasksCommandOptions) =>
      onAction(options, async () => (await import("./look.ts")).tasksCommand(options)),
    );
  command("migrate", "what the present release means for every stored task; writes the declared migrations down")
    .option("--dry-run", "only say it, write nothing")
    .option("--graph <graph>", "only the tasks of this graph")
    .option("--unfit <choice>", "keep, empty or delete what fits no longer though the version is the same")
    .addHelpText("after", "\nExit codes: 0 no task is quarantined, 3 some are; those stay as they are stored.")
    .action((options: CommonOptions) =>
      onAction(options, async () => (await import("./migrate.ts")).migrateCommand(options)),
    );
  command("prune", "remove tasks that were completed or cancelled long ago, with their logs")
    .option("--days <number>", "how many days ago at least")
    .option("--graphs <graphs>", "only of these, with commas between them; all of langgraph.json unless set")
    .option(
      "--workflow <names>",
      "only of workflows of these names, whose graphs may be gone; may be repeated",
      collect,
    )
    .option("--dry-run", "only count them")
    .addHelpText("after", "\nExample: statecard prune --days 90\nWorkers do it daily with --keep-ended 90.")
    .action((options: CommonOptions) =>
      onAction(options, async () => (await import("./prune.ts")).pruneCommand(options)),
    );
  command("approvals", "every approval that is open, over all tasks").action((options: CommonOptions) =>
    onAction(options, async () => (await import("./approvals.ts")).approvalsCommand(options)),
  );
  command("token", "who may answer with --as: make a person's token, list who has one, or end one")
    .addArgument(new Argument("<action>", "what to do").choices(TOKEN_ACTIONS))
    .argument("[name]", "whose token")
    .option("--tenant <name>", "the tenant whose tasks this person sees over HTTP")
    .action((action: TokenAction, name: string | undefined, options: CommonOptions) =>
      onAction(options, async () => (await import("./token.ts")).tokenCommand(action, name, options)),
    );
  command(
    "consent",
    "what may go to models elsewhere: list what was decided, allow or withhold kinds of data, withdraw",
  )
    .addArgument(new Argument("<action>", "what to do").choices(CONSENT_ACTIONS))
    .argument("[graph]", "whose data it is: a graph, or a workflow as list names it")
    .argument("[kinds...]", "which kinds of data; all that the graph declares unless given")
    .option("--to <host>", "the model's host, or agents for MCP clients; where the graph's models run unless set")
    .option("--tenant <name>", "for the tasks of this tenant")
    .addHelpText(
      "after",
      "\nExample: statecard consent allow code-review code\n         statecard consent withhold refactor --to agents",
    )
    .action(
      (action: ConsentAction, graph: string | undefined, kinds: readonly string[], options: ConsentCommandOptions) =>
        onAction(options, async () => (await import("./consent.ts")).consentCommand(action, graph, kinds, options)),
    );
  command("memory", "what is remembered across tasks: list or search somebody's, forget one, or clean up")
    .addArgument(new Argument("<action>", "what to do").choices(MEMORY_ACTIONS))
    .argument("[words...]", "what to look for, or the id to forget")
    .option("--user <name>", "the user whose memory it is")
    .option("--agent <name>", "the agent whose memory it is, alone or of that user")
    .option("--limit <number>", "how many to show; 20 unless set")
    .addHelpText(
      "after",
      "\nExample: statecard memory search router cellar --user ann\nclean deletes what has expired and passing memories of the day before, of everybody; run it daily.",
    )
    .action((action: MemoryAction, words: readonly string[], options: MemoryCommandOptions) =>
      onAction(options, async () => (await import("./memory.ts")).memoryCommand(action, words, options)),
    );
  command("preview <graph|task>", "what the model would be sent, under each policy, without a key")
    .option("--message <text>", "what the user would say next")
    .option("--show", "print the prompt itself")
    .option("--provider <name>", "whose prompt cache the costs are reckoned by; the model's unless set")
    .option("--with <technique>", "switch run-time facts on; may be repeated", collect)
    .option("--without <technique>", "switch run-time facts off; may be repeated", collect)
    .addHelpText("after", "\nTechniques: timestamps, counters, todo, errors, system, all.")
    .action((name: string, options: CommonOptions) =>
      onAction(options, async () => (await import("./preview.ts")).previewCommand(name, options)),
    );
  command("graph <graph>", "a workflow's transition table")
    .option("--mermaid", "as a Mermaid state diagram")
    .action((graph: string, options: CommonOptions) =>
      onAction(options, async () => (await import("./graph.ts")).graphCommand(graph, options)),
    );
  command("export <task> <dir>", "a task as a folder: state.json, events.log, artifacts/")
    .addHelpText("after", "\nWith STATECARD_EXPORT_KEY set, the export is signed.")
    .action((task: string, folder: string, options: CommonOptions) =>
      onAction(options, async () => (await import("./export.ts")).exportCommand(task, folder, options)),
    );
  program
    .command("verify <dir>")
    .description("whether an export is whole and unchanged, without a database; ends with 3 where it is not")
    .option("--json", "one JSON document on standard output")
    .addHelpText("after", "\nWith STATECARD_EXPORT_KEY set, it has to be signed with that key.")
    .action((folder: string, options: CommonOptions) =>
      onAction(options, async () => (await import("./export.ts")).verifyCommand(folder, options)),
    );
  command("import <dir>", "take an exported task into the database; its log is enough")
    .option("--as-task <id>", "the task's id here, where its own is taken")
    .option("--graph <graph>", "the task's graph, where langgraph.json does not have it")
    .action((folder: string, options: CommonOptions) =>
      onAction(options, async () => (await import("./export.ts")).importCommand(folder, options)),
    );
  program
    .command("skills")
    .description("look at folders of skills (SKILL.md) without running anything; ends with 3 where one is broken")
    .addArgument(new Argument("<action>", "what to do").choices(["check"]))
    .argument("<folders...>", "folders with skills, or of one skill")
    .option("--json", "one JSON document on standard output")
    .addHelpText("after", "\nExample: statecard skills check skills")
    .action((_action: "check", folders: readonly string[], options: CommonOptions) =>
      onAction(options, async () => (await import("./skills.ts")).skillsCommand(folders, options)),
    );
  return program;
}

/**
 * Runs one command.
 *
 * @param args the words behind `statecard`.
 * @returns the exit code.
 */
export async function main(args: readonly string[]): Promise<number> {
  const json = args.includes("--json");
  let options: CommonOptions = {};
  try {
    let action: Action | undefined;
    const program = buildProgram((given, chosen) => {
      checkOptions(given);
      options = given;
      action = chosen;
    });
    for (const each of [program, ...program.commands]) {
      each.exitOverride();
      if (json) each.configureOutput({ writeErr: () => {} });
    }
    await program.parseAsync([...args], { from: "user" });
    return (await action?.()) ?? EXIT.ok;
  } catch (error) {
    return reportError(error, json, options);
  }
}
