// An MCP server over stdio, as a process of its own: node --import tsx mcp-server.ts
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "test", version: "1.0.0" });
const text = (...texts: readonly string[]) => ({ content: texts.map((text) => ({ type: "text" as const, text })) });

server.registerTool(
  "add",
  {
    description: "Adds two numbers.",
    inputSchema: { a: z.number(), b: z.number().default(1) },
    outputSchema: { sum: z.number() },
    annotations: { readOnlyHint: true, idempotentHint: true },
  },
  ({ a, b }) => ({ ...text(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } }),
);
server.registerTool("say", { description: "Says it twice.", inputSchema: { what: z.string() } }, ({ what }) =>
  text(what, what),
);
server.registerTool("files.list", { description: "Lists.", annotations: { destructiveHint: true } }, () =>
  text("a.txt"),
);
server.registerTool("draw", { description: "Draws." }, () => ({
  content: [
    { type: "text", text: "here" },
    { type: "image", data: "aGVsbG8=", mimeType: "image/png" },
  ],
}));
server.registerTool("fail", { description: "Fails." }, () => ({ ...text("no such file"), isError: true }));
server.registerTool("break", { description: "Throws." }, () => {
  throw new Error("out of order");
});
server.registerTool("hang", { description: "Never answers." }, () => new Promise(() => undefined));

await server.connect(new StdioServerTransport());
