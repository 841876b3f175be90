// What really happened in the world: keeps every effect that it is told of, repetitions too.
import { createServer } from "node:http";

const effects = new Map();
const server = createServer((request, response) => {
  const task = decodeURIComponent((request.url ?? "/").slice(1));
  const known = effects.get(task) ?? [];
  if (request.method !== "POST") return response.end(JSON.stringify(known));
  let body = "";
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => {
    effects.set(task, [...known, JSON.parse(body)]);
    response.end("[]");
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => process.send?.(server.address().port));
