import { WorkflowError } from "../errors.ts";
import { openStore } from "../storage/open-store.ts";
import { checkTenant } from "../storage/tenants.ts";
import { storeForReading } from "./database.ts";
import { usage } from "./exit.ts";
import type { CommonOptions, TokenAction } from "./options.ts";
import { checkName } from "./person.ts";
import { print } from "./print.ts";
import { printable, shellWord } from "./terminal.ts";

export interface TokenCommandOptions extends CommonOptions {
  /** Whose tasks its owner sees over HTTP; those of no tenant unless set. */
  readonly tenant?: string;
}

/** `statecard token`: who may answer as somebody other than the operating-system user. */
export function tokenCommand(
  action: TokenAction,
  name: string | undefined,
  options: TokenCommandOptions,
): Promise<number> {
  if (action !== "create" && options.tenant !== undefined) throw usage("--tenant belongs to token create");
  if (action === "list") {
    if (name !== undefined) throw usage("token list takes no name");
    return listTokens(options);
  }
  if (name === undefined) throw usage(`token ${action} needs the name of a person`);
  return action === "create" ? createToken(checkName(name), options) : revokeToken(checkName(name), options);
}

async function createToken(name: string, options: TokenCommandOptions): Promise<number> {
  const tenant = options.tenant === undefined ? "" : checkTenant(options.tenant);
  const { token, replaced } = await openStore(options.db).tokens.create(name, tenant);
  const text = [
    `The token of ${name}${tenant && ` of tenant ${tenant}`}, shown this once${replaced ? "; the one before is no longer valid" : ""}:`,
    token,
    `Whoever has it answers as ${name}: with it in STATECARD_TOKEN, or typed when asked, by  npx statecard resume TASK --as ${shellWord(name)} --approve`,
    "Over HTTP (npx statecard serve) it goes into the header  Authorization: Bearer …",
  ];
  return print(options, { name, ...(tenant && { tenant }), token, replaced }, text.join("\n"));
}

async function listTokens(options: CommonOptions): Promise<number> {
  const tokens = (await storeForReading(options.db).tokens.list()).map(({ name, tenant, createdAt }) => ({
    name,
    ...(tenant && { tenant }),
    createdAt: new Date(createdAt).toISOString(),
  }));
  const lines = tokens.map(
    ({ name, tenant, createdAt }) =>
      `${printable(name)}  since ${createdAt.slice(0, 10)}${tenant === undefined ? "" : `  tenant ${tenant}`}`,
  );
  return print(
    options,
    { tokens },
    lines.join("\n") || "No tokens yet. Make one with: npx statecard token create NAME",
  );
}

async function revokeToken(name: string, options: CommonOptions): Promise<number> {
  if (!(await storeForReading(options.db).tokens.revoke(name))) {
    throw new WorkflowError("INVALID_TOKEN", `${name} has no token; npx statecard token list tells who has`, {
      details: { name },
    });
  }
  return print(options, { name, revoked: true }, `The token of ${name} is no longer valid.`);
}
