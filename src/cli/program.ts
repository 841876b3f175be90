import { readFileSync } from "node:fs";
import { Argument, Command as Program, CommanderError } from "commander";
import { isWorkflowError } from "../errors.ts";
import { redact } from "../internal/redact.ts";
import { EXIT, exitCodeOf } from "./exit.ts";
import { howToResume } from "./hints.ts";
import { Interrupted } from "./interruptible.ts";
import {
  checkOptions,
  MEMORY_ACTIONS,
  sameTask,
  TOKEN_ACTIONS,
  type CommonOptions,
  type MemoryAction,
  type MemoryCommandOptions,
  type TokenAction,
} from "./options.ts";
import { detectTerminal, printableLines } from "./terminal.ts";

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
      "\nExit codes: 0 finished or shown, 10 waiting for a person, 1 the task failed, 2 usage, 3 refused.\nEnvironment: STATECARD_DB, STATECARD_TOKEN, OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL.",
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
  command("show <task>", "where a task stands").action((task: string, options: CommonOptions) =>
    onAction(options, async () => (await import("./look.ts")).showCommand(task, options)),
  );
  command("history <task>", "what happened to a task, line by line").action((task: string, options: CommonOptions) =>
    onAction(options, async () => (await import("./look.ts")).historyCommand(task, options)),
  );
  command("tasks", "all tasks of the database, the latest changed first").action((options: CommonOptions) =>
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
  command("approvals", "every approval that is open, over all tasks").action((options: CommonOptions) =>
    onAction(options, async () => (await import("./approvals.ts")).approvalsCommand(options)),
  );
  command("token", "who may answer with --as: make a person's token, list who has one, or end one")
    .addArgument(new Argument("<action>", "what to do").choices(TOKEN_ACTIONS))
    .argument("[name]", "whose token")
    .action((action: TokenAction, name: string | undefined, options: CommonOptions) =>
      onAction(options, async () => (await import("./token.ts")).tokenCommand(action, name, options)),
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
      onAction(options, async () => (await import("./look.ts")).graphCommand(graph, options)),
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

function reportError(error: unknown, json: boolean, options: CommonOptions): number {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return EXIT.ok;
    if (json) printJson({ code: "USAGE", message: error.message.replace(/^error: /, ""), details: {} });
    return EXIT.usage;
  }
  const known = describeError(error);
  if (json) printJson(known);
  else process.stderr.write(`${printableLines(`${known.code}: ${known.message}`)}${howToGoOn(known, options)}\n`);
  if (known.code === "INTERRUPTED") {
    // A step that ignores the abort would hold the process, and its task is free for others now.
    process.stdout.write("", () => process.exit(EXIT.interrupted));
    return EXIT.interrupted;
  }
  return exitCodeOf(error);
}

interface DescribedError {
  readonly code: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

function printJson(error: DescribedError): void {
  process.stdout.write(`${JSON.stringify({ error }, null, 2)}\n`);
}

function describeError(error: unknown): DescribedError {
  if (isWorkflowError(error)) return { code: error.code, message: redact(error.message), details: error.details };
  if (error instanceof Interrupted)
    return { code: "INTERRUPTED", message: error.message, details: { taskId: error.taskId } };
  // Not ours: the stack is what a bug report needs.
  const message = redact(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return { code: "UNEXPECTED", message, details: {} };
}

const RESUMABLE: ReadonlySet<string> = new Set([
  "INTERRUPTED",
  "MODEL_FAILED",
  "MODEL_TIMEOUT",
  "STEP_FAILED",
  "MISSING_MODEL",
  "APPROVAL_EXPIRED",
]);

/** After a failure that leaves the task where it was: the command that tries again. */
function howToGoOn({ code, details: { taskId } }: DescribedError, options: CommonOptions): string {
  if (!RESUMABLE.has(code) || typeof taskId !== "string") return "";
  return `\nGo on with:  ${howToResume(detectTerminal(process.stderr), taskId, sameTask(options))}`;
}
