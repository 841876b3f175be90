import { spawn } from "node:child_process";
import { isSecretName } from "../../internal/redact.ts";
import { shorten } from "../../internal/json.ts";
import { ToolError } from "../tool-error.ts";

/** How much of a program's output is kept: the end, where results stand. */
const KEPT_CHARACTERS = 6000;

/** How a program ended. */
export interface CommandEnd {
  /** Null where a signal ended it. */
  readonly exitCode: number | null;
  /** What it printed on both streams, in order; of much, the end. */
  readonly output: string;
}

/**
 * Runs a program in a folder, without a shell and without input. Its environment is this process's, without
 * variables that are named like secrets. An abort ends it and whatever it has started.
 *
 * @throws ToolError NOT_STARTED.
 */
export async function runProgram(
  folder: string,
  [program = "", ...args]: readonly string[],
  signal: AbortSignal,
): Promise<CommandEnd> {
  signal.throwIfAborted();
  const child = spawn(program, args, {
    cwd: folder,
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !isSecretName(name) && !MARKS.test(name))),
    stdio: ["ignore", "pipe", "pipe"],
    // A group of its own, so that all of it can be ended.
    detached: process.platform !== "win32",
  });
  const end = () => {
    try {
      if (child.pid !== undefined) process.kill(process.platform === "win32" ? child.pid : -child.pid, "SIGKILL");
    } catch {
      // It has ended by itself.
    }
  };
  signal.addEventListener("abort", end, { once: true });
  let output = "";
  let leftOut = 0;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8");
    stream.on("data", (text: string) => {
      output += text;
      // Half a character is no text: providers refuse a prompt that holds one.
      const kept = output.slice(-KEPT_CHARACTERS).replace(/^[\udc00-\udfff]/, "");
      leftOut += output.length - kept.length;
      output = kept;
    });
  }
  try {
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", resolve);
    });
    signal.throwIfAborted();
    return { exitCode, output: leftOut > 0 ? `… ${leftOut} characters left out …\n${output}` : output };
  } catch (error) {
    if (signal.aborted) throw error;
    const said = error instanceof Error ? error.message : String(error);
    throw new ToolError(`${shorten(program, 100)} could not be started: ${said}`, {
      type: "NOT_STARTED",
      cause: error,
    });
  } finally {
    signal.removeEventListener("abort", end);
  }
}

/** What is ours alone, such as where tasks are kept; and by what a program takes itself for a part of other tests. */
const MARKS = /^(?:STATECARD_|VITEST|NODE_OPTIONS$|NODE_TEST_CONTEXT$)/;
