import { WorkflowError } from "../errors.ts";
import { openStore } from "../storage/open-store.ts";
import { storeForReading } from "./database.ts";
import { EXIT, usage } from "./exit.ts";
import type { CommonOptions, TokenAction } from "./options.ts";
import { checkName } from "./person.ts";
import { printable } from "./terminal.ts";

/** `statecard token`: who may answer as somebody other than the operating-system user. */
export function tokenCommand(action: TokenAction, name: string | undefined, options: CommonOptions): Promise<number> {
  if (action === "list") {
    if (name !== undefined) throw usage("token list takes no name");
    return listTokens(options);
  }
  if (name === undefined) throw usage(`token ${action} needs the name of a person`);
  return action === "create" ? createToken(checkName(name), options) : revokeToken(checkName(name), options);
}

function print(options: CommonOptions, json: unknown, text: string): number {
  process.stdout.write(`${options.json ? JSON.stringify(json, null, 2) : text}\n`);
  return EXIT.ok;
}

async function createToken(name: string, options: CommonOptions): Promise<number> {
  const { token, replaced } = await openStore(options.db).createToken(name);
  const text = [
    `The token of ${name}, shown this once${replaced ? "; the one before is no longer valid" : ""}:`,
    token,
    `Whoever has it answers as ${name}: with it in STATECARD_TOKEN, or typed when asked, by  npx statecard resume TASK --as ${name} --approve`,
  ];
  return print(options, { name, token, replaced }, text.join("\n"));
}

async function listTokens(options: CommonOptions): Promise<number> {
  const tokens = (await storeForReading(options.db).tokens()).map(({ name, createdAt }) => ({
    name,
    createdAt: new Date(createdAt).toISOString(),
  }));
  const lines = tokens.map(({ name, createdAt }) => `${printable(name)}  since ${createdAt.slice(0, 10)}`);
  return print(
    options,
    { tokens },
    lines.join("\n") || "No tokens yet. Make one with: npx statecard token create NAME",
  );
}

async function revokeToken(name: string, options: CommonOptions): Promise<number> {
  if (!(await storeForReading(options.db).revokeToken(name))) {
    throw new WorkflowError("INVALID_TOKEN", `${name} has no token; npx statecard token list tells who has`, {
      details: { name },
    });
  }
  return print(options, { name, revoked: true }, `The token of ${name} is no longer valid.`);
}
