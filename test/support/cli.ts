import { fork, spawn, spawnSync, type ChildProcess, type SpawnOptions } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";

/** The project's root: where `statecard run ticket` finds the ticket graph. */
export const PROJECT = fileURLToPath(new URL("../..", import.meta.url));
export const COMMAND = join(PROJECT, "dist/cli/main.js");

// A command that hangs must not leave its process behind.
const HANGS_AFTER_MS = 100_000;
// Before the driver of a terminal is ended itself, so that it still says what it saw.
const HANGS_AT_TERMINAL_AFTER_S = HANGS_AFTER_MS / 1000 - 10;

export interface CommandResult {
  /** The exit code; null where a signal ended it, or where it hung and was ended by the test. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  /** The working folder; the project's root unless set. */
  readonly folder?: string;
  /** Added to a small clean environment. */
  readonly environment?: Readonly<Record<string, string>>;
  /** What is piped in; nothing unless set. */
  readonly input?: string | Uint8Array;
  /** A process of its own even where the file shares one. */
  readonly ownProcess?: boolean;
  /** The user to run as; only root may set it. */
  readonly uid?: number;
}

/** A command that runs in a process of its own. */
export interface RunningCommand {
  readonly process: ChildProcess;
  readonly result: Promise<CommandResult>;
}

/** Runs `statecard` and waits for its end. */
export function statecard(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const needsOwnProcess = options.ownProcess || options.input !== undefined || options.uid !== undefined;
  return host && !needsOwnProcess ? host.run(args, options) : startStatecard(args, options).result;
}

let host: CommandHost | null = null;

/** Lets the commands of a test file share one process, where starting it is not what is tested. */
export function shareOneProcess(): void {
  beforeAll(async () => {
    host = new CommandHost();
    await host.ready;
  });
  afterAll(() => {
    host?.stop();
    host = null;
  });
}

/** A process that runs one command after the other. */
class CommandHost {
  readonly ready: Promise<void>;
  private readonly child = fork(join(PROJECT, "test/support/command-host.mjs"), { stdio: "ignore" });
  private turn: Promise<unknown>;

  constructor() {
    this.ready = this.next().then(() => {});
    this.turn = this.ready;
  }

  run(args: readonly string[], options: CommandOptions): Promise<CommandResult> {
    const result = this.turn.then(() => {
      this.child.send({ args, folder: options.folder ?? PROJECT, environment: cleanEnvironment(options.environment) });
      return this.next() as Promise<CommandResult>;
    });
    this.turn = result.catch(() => {});
    return result;
  }

  stop(): void {
    this.child.kill();
  }

  private next(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const ended = () => reject(new Error("the command ended the process that it shares"));
      this.child.once("exit", ended);
      this.child.once("message", (message) => {
        this.child.off("exit", ended);
        resolve(message);
      });
    });
  }
}

/** Starts `statecard` without waiting. */
export function startStatecard(args: readonly string[], options: CommandOptions = {}): RunningCommand {
  if (!existsSync(COMMAND)) throw new Error("dist/cli/main.js is missing: npm run build");
  return start(process.execPath, [COMMAND, ...args], options);
}

/** Runs a line in a shell, as a person would paste it. */
export function shell(line: string, options: CommandOptions = {}): Promise<CommandResult> {
  return start("/bin/sh", ["-c", line], options).result;
}

function start(program: string, args: readonly string[], options: CommandOptions): RunningCommand {
  const settings: SpawnOptions = {
    cwd: options.folder ?? PROJECT,
    env: cleanEnvironment(options.environment),
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  };
  const child = spawn(program, args, settings);
  const chunks: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] };
  child.stdout?.on("data", (chunk: Buffer) => chunks.stdout.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => chunks.stderr.push(chunk));
  // A command that does not read its input closes it.
  child.stdin?.on("error", () => {});
  child.stdin?.end(options.input ?? "");
  const result = new Promise<CommandResult>((resolve, reject) => {
    const hangs = setTimeout(() => child.kill("SIGKILL"), HANGS_AFTER_MS);
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(hangs);
      resolve({ code, stdout: textOf(chunks.stdout), stderr: textOf(chunks.stderr) });
    });
  });
  return { process: child, result };
}

function textOf(chunks: readonly Buffer[]): string {
  return Buffer.concat(chunks).toString("utf8");
}

// What happens to be set on this machine (keys, databases, colours) must not reach the command.
function cleanEnvironment(added: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR } = process.env;
  const kept = Object.entries({ PATH, HOME, TMPDIR }).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(kept), LANG: "C.UTF-8", ...added };
}

/** A task as run, resume and show print it with --json. */
export interface ShownTask {
  readonly taskId: string;
  readonly workflow: string;
  readonly version: number;
  readonly status: string;
  readonly step: string;
  readonly completedSteps: readonly string[];
  readonly revision: number;
  readonly retryCount: number;
  readonly state: Readonly<Record<string, unknown>>;
  readonly waiting?: readonly { readonly id: string; readonly kind: string; readonly question: string }[];
  readonly lastError?: { readonly code: string; readonly message: string };
  readonly usage: Readonly<Record<"calls" | "inputTokens" | "cachedTokens" | "outputTokens", number>>;
}

/** An error as every command prints it with --json. */
export interface ShownError {
  readonly code: string;
  readonly message: string;
  readonly details: object;
}

export function taskOf(result: CommandResult): ShownTask {
  return jsonOf(result) as ShownTask;
}

export function errorOf(result: CommandResult): ShownError {
  const { error, ...others } = jsonOf(result) as { error: ShownError };
  expect(others).toEqual({});
  return error;
}

/** A time as JSON shows it. */
export const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** The events that `history --json` prints. */
export function eventsOf(result: CommandResult): readonly ShownEvent[] {
  return (jsonOf(result) as { events: ShownEvent[] }).events;
}

interface ShownEvent {
  readonly kind: string;
  readonly at: string;
  readonly data: Record<string, unknown>;
}

/** The rows that `tasks --json` prints. */
export function rowsOf(result: CommandResult): readonly { taskId: string }[] {
  return (jsonOf(result) as { tasks: { taskId: string }[] }).tasks;
}

/** The one JSON document on the standard output; fails where there is anything else. */
export function jsonOf(result: { readonly stdout: string; readonly stderr: string }): unknown {
  try {
    return JSON.parse(result.stdout) as unknown;
  } catch (error) {
    throw new Error(`not one JSON document:\n${result.stdout}\n${result.stderr}`, { cause: error });
  }
}

/** What a refusal has to be. */
export interface ExpectedRefusal {
  readonly code: string;
  readonly exit: number;
  /** What the message has to say, above all: what to do. */
  readonly says: RegExp;
}

/**
 * Runs a command that has to be refused, once for people and once with --json, and checks both: the
 * exit code, the error's code and message, no stack trace, and nothing else on the standard output.
 */
export async function expectRefusal(
  args: readonly string[],
  expected: ExpectedRefusal,
  options: CommandOptions = {},
): Promise<readonly CommandResult[]> {
  const [command = "", ...rest] = args;
  const [forPeople, forPrograms] = await Promise.all([
    statecard(args, options),
    statecard([command, "--json", ...rest], options),
  ]);
  expect(forPeople).toMatchObject({ code: expected.exit, stdout: "" });
  expect(forPeople.stderr).toMatch(expected.says);
  if (expected.code !== "USAGE") expect(forPeople.stderr).toContain(`${expected.code}: `);
  expectNoStackTrace(forPeople);

  const error = errorOf(forPrograms);
  expect({ code: error.code, exit: forPrograms.code }).toEqual({ code: expected.code, exit: expected.exit });
  expect(error.message).toMatch(expected.says);
  expect(error.details).toBeTypeOf("object");
  expectNoStackTrace(forPrograms);
  return [forPeople, forPrograms];
}

/** No line of a stack trace, neither on the standard output nor beside it. */
export function expectNoStackTrace(result: CommandResult): void {
  expect(`${result.stdout}${result.stderr}`).not.toMatch(/^\s*at .*[:(]|\\n\s*at |node:internal|UnhandledPromise/m);
}

/** A fresh folder, removed when the test ends. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "statecard-cli-"));
  // Commands that run as another user have to get in.
  await chmod(folder, 0o755);
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Options with a database of their own, in the project's root. */
export async function ownDatabase(): Promise<CommandOptions & { readonly database: string }> {
  const database = join(await temporaryFolder(), "tasks.db");
  return { database, environment: { STATECARD_DB: database } };
}

/** A folder as a stranger's project: statecard and zod installed, and the given files. */
export async function projectFolder(files: Readonly<Record<string, string>>): Promise<string> {
  return fillProject(await temporaryFolder(), files);
}

/** Puts the packages that a workflow needs, and files, into a folder. */
export async function fillProject(folder: string, files: Readonly<Record<string, string>>): Promise<string> {
  await mkdir(join(folder, "node_modules"));
  await symlink(PROJECT, join(folder, "node_modules/statecard"));
  await symlink(join(PROJECT, "node_modules/zod"), join(folder, "node_modules/zod"));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

/** The `npx statecard …` of a hint as a line for a shell, with the answer filled in. */
export function filledIn(output: string, answer: string): string {
  const hint = /npx statecard (resume .*)$/m.exec(output)?.[1];
  if (hint === undefined) throw new Error(`no hint how to go on in:\n${output}`);
  return hint.replace(/--answer\s+["'].*["']/, `--answer "${answer}"`);
}

/** Runs a hint through a shell, with the built command in place of `npx statecard`. */
export function followHint(output: string, answer: string, options: CommandOptions): Promise<CommandResult> {
  return shell(`"${process.execPath}" "${COMMAND}" ${filledIn(output, answer)}`, options);
}

/**
 * Waits until something holds that another process brings about; fails where it never does.
 *
 * @param running the processes, where the end of one before that is a failure too.
 */
export async function until(holds: () => boolean, ...running: readonly RunningCommand[]): Promise<void> {
  // Before the processes are ended themselves, so that it is known which of them still ran.
  const deadline = Date.now() + HANGS_AFTER_MS - 5000;
  const ended: CommandResult[] = [];
  for (const { result } of running) void result.then((each) => ended.push(each));
  while (!holds()) {
    if (ended.length > 0) throw new Error(`a command ended before that: ${JSON.stringify(ended)}`);
    if (Date.now() > deadline) {
      for (const { process } of running) process.kill("SIGKILL");
      const said = JSON.stringify(await Promise.all(running.map(({ result }) => result)));
      throw new Error(`this never came true: ${holds.toString()}; what was said until then: ${said}`);
    }
    await sleep(10);
  }
}

// Python is the one thing at hand that can open a pseudo-terminal.
const TERMINAL_DRIVER = `
import json, os, pty, re, select, signal, sys, time
command, steps, limit = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
output, seen, deadline, hung = b"", 0, time.time() + limit, False
while True:
    if steps:
        found = re.search(steps[0][0].encode(), output[seen:])
        if found:
            seen += found.end()
            os.write(terminal, steps.pop(0)[1].encode())
            continue
    if time.time() > deadline:
        hung = True
        os.kill(pid, signal.SIGKILL)
        break
    if select.select([terminal], [], [], 0.2)[0]:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        output += data
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(json.dumps({"code": None if hung else code, "output": output.decode("utf-8", "replace"), "left": len(steps)}))
`;

export const hasPython = spawnSync("python3", ["-c", "import pty"]).status === 0;

export interface TerminalResult {
  /** Null where the command did not end by itself. */
  readonly code: number | null;
  readonly output: string;
  /** How many of the steps never came up. */
  readonly left: number;
}

/** Runs `statecard` at a pseudo-terminal; each step waits for a pattern and types something. */
export async function atTerminal(
  args: readonly string[],
  steps: readonly (readonly [pattern: string, keys: string])[],
  options: CommandOptions = {},
): Promise<TerminalResult> {
  const job = JSON.stringify([[process.execPath, COMMAND, ...args], steps, HANGS_AT_TERMINAL_AFTER_S]);
  const environment = { TERM: "xterm-256color", ...options.environment };
  const driver = await start("python3", ["-c", TERMINAL_DRIVER, job], { ...options, environment }).result;
  return jsonOf(driver) as TerminalResult;
}

/** The user "nobody", for whom permissions bind; null where this process cannot become it, or it cannot run us. */
export function unprivilegedUser(): { readonly uid?: number } | null {
  if (process.getuid?.() !== 0) return {};
  const uid = 65_534;
  const works = spawnSync(process.execPath, [COMMAND, "--version"], { uid, gid: uid, env: cleanEnvironment() });
  return works.status === 0 ? { uid } : null;
}
