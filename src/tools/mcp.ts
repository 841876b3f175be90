import { WorkflowError } from "../errors.ts";
import { isPlainObject } from "../internal/json.ts";
import { NAME } from "../workflow/fault.ts";
import type { Tool } from "../workflow/tool.ts";
import { fromLangChain, type AnyArguments, type Declaration, type LangChainTool } from "./langchain.ts";

/** The tools of MCP servers: a `MultiServerMCPClient` of `@langchain/mcp-adapters`, or what its `getTools` gave. */
export type McpSource = { getTools(): Promise<readonly LangChainTool[]> } | readonly LangChainTool[];

export interface McpToolsOptions {
  /**
   * Takes a server's own word for what its tools do (`readOnlyHint`, `idempotentHint`). Without it the hints
   * are shown and every tool that is not declared is taken for one that changes something.
   */
  readonly believeHints?: boolean;
}

/** What is assumed of a tool that nobody has declared. */
const CAREFUL: Declaration = { effect: "write", idempotent: false, trusted: false };
const MAX_NAME = 64;

/**
 * Makes tools of those of MCP servers, by name. What a name of ours cannot hold becomes `_`. Give `false`
 * in place of a declaration to leave a tool out.
 *
 * @param declarations what is known of them, by the server's name or ours.
 * @throws INVALID_WORKFLOW where names collide, or a declaration belongs to no tool.
 *
 * @example
 * const client = new MultiServerMCPClient({ files: { command: "npx", args: ["-y", "some-server"] } });
 * const tools = await mcpTools(client, { read_file: { effect: "read" }, delete_file: false });
 */
export async function mcpTools(
  source: McpSource,
  declarations: Readonly<Record<string, Declaration | false>> = {},
  options: McpToolsOptions = {},
): Promise<Readonly<Record<string, Tool<AnyArguments>>>> {
  const found = "getTools" in source ? await source.getTools() : source;
  const named = found.map((tool) => ({ tool, name: ourName(tool.name) }));
  const faults = [...collisions(named), ...strangers(named, Object.keys(declarations))];
  if (faults.length > 0) {
    throw new WorkflowError("INVALID_WORKFLOW", faults.map(({ message }) => message).join("; "), {
      details: { faults },
    });
  }
  const made = named.flatMap(({ tool, name }) => {
    const key = [tool.name, name].find((one) => Object.hasOwn(declarations, one));
    const declared = key === undefined ? undefined : declarations[key];
    if (declared === false) return [];
    const hints = hintsOf(tool);
    const assumed = options.believeHints ? believed(hints) : CAREFUL;
    const description = [tool.description, told(hints)].filter(Boolean).join(" ");
    return [[name, fromLangChain(tool, { ...assumed, description, ...declared })] as const];
  });
  return Object.fromEntries(made);
}

type Named = readonly { readonly tool: LangChainTool; readonly name: string }[];

function ourName(name: string): string {
  const plain = name.replaceAll(/[^\p{L}\p{N}_-]/gu, "_").slice(0, MAX_NAME);
  return NAME.test(plain) ? plain : `_${plain}`.slice(0, MAX_NAME);
}

const fault = (name: string, message: string) => ({ path: `tools.${name}`, code: "INVALID_TOOL", message });

function collisions(named: Named) {
  return [...new Set(named.map(({ name }) => name))].flatMap((name) => {
    const same = named.filter((one) => one.name === name);
    const theirs = same.map(({ tool }) => `"${tool.name}"`).join(", ");
    const advice = "set prefixToolNameWithServerName for the client";
    return same.length > 1 ? [fault(name, `${theirs} would all be named ${name}; ${advice}`)] : [];
  });
}

/** A declaration with a slip in its name would leave a tool without its approval. */
function strangers(named: Named, declared: readonly string[]) {
  const known = new Set(named.flatMap(({ tool, name }) => [tool.name, name]));
  const names = named.map(({ name }) => name).join(", ") || "none";
  return declared
    .filter((name) => !known.has(name))
    .map((name) => fault(name, `no server has a tool "${name}"; there are: ${names}`));
}

interface Hints {
  readonly readOnlyHint?: unknown;
  readonly destructiveHint?: unknown;
  readonly idempotentHint?: unknown;
}

function hintsOf({ metadata }: LangChainTool): Hints {
  return isPlainObject(metadata?.annotations) ? metadata.annotations : {};
}

function believed({ readOnlyHint, idempotentHint }: Hints): Declaration {
  return { ...CAREFUL, effect: readOnlyHint === true ? "read" : "write", idempotent: idempotentHint === true };
}

function told({ readOnlyHint, destructiveHint, idempotentHint }: Hints): string {
  const said = [
    readOnlyHint === true ? "only reads" : "",
    destructiveHint === true && readOnlyHint !== true ? "may destroy something" : "",
    idempotentHint === true ? "can be repeated without harm" : "",
  ].filter(Boolean);
  return said.length > 0 ? `(Its server says that it ${said.join(" and ")}.)` : "";
}
