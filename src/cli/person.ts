import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { WorkflowError } from "../errors.ts";
import { systemUser } from "../internal/system-user.ts";
import type { SqlStore } from "../storage/sql-store.ts";
import { usage } from "./exit.ts";
import { shellWord } from "./terminal.ts";

/**
 * Who answers: the operating-system user, or the person named with `--as`, whose token has to be in
 * STATECARD_TOKEN or typed at a terminal. A token is never an argument: other users see those.
 *
 * @throws INVALID_TOKEN.
 */
export async function whoAnswers(as: string | undefined, store: SqlStore): Promise<string> {
  if (as === undefined) return systemUser();
  const name = checkName(as);
  const token = (process.env.STATECARD_TOKEN ?? (await askHidden(`Token of ${name}: `)))?.trim();
  // Nothing that a workflow runs in this process needs it.
  delete process.env.STATECARD_TOKEN;
  const refuse = (why: string) => new WorkflowError("INVALID_TOKEN", why, { details: { name } });
  if (!token) {
    throw refuse(
      `--as ${name} needs the token of ${name}: put it into STATECARD_TOKEN, or run this at a terminal and type it`,
    );
  }
  if (await store.tokens.isOf(name, token)) return name;
  throw refuse(
    `this is not the token of ${name}; a new one is made with: npx statecard token create ${shellWord(name)}, where the database is kept`,
  );
}

const MAX_NAME = 64;

/**
 * A person's name as it is kept.
 *
 * @throws USAGE. The message does not repeat what may be a token that was put in the wrong place.
 */
export function checkName(name: string): string {
  if (/\bsc_[\w-]{20,}/.test(name)) {
    throw usage("a token stands where a name belongs; it is known to other users now: revoke it and make a new one");
  }
  if (name === "" || name !== name.trim() || name.length > MAX_NAME || /\p{C}/u.test(name)) {
    throw usage(`a person's name has 1 to ${MAX_NAME} characters, no control characters, and no space around it`);
  }
  return name.normalize("NFC");
}

/** Reads a line from the terminal without showing it; null where there is no terminal, or no line. */
async function askHidden(prompt: string): Promise<string | null> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return null;
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const reader = createInterface({ input: process.stdin, output: nowhere, terminal: true, historySize: 0 });
  // Only now: before, the terminal itself would show what is typed.
  process.stderr.write(prompt);
  try {
    return await new Promise<string | null>((resolve) => {
      reader.once("line", resolve);
      reader.once("close", () => resolve(null));
    });
  } finally {
    reader.close();
    process.stderr.write("\n");
  }
}
