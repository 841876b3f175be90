// Runs commands of the compiled command line one after the other in one process, so that hundreds of
// them need not start hundreds of processes. Each gets its own folder, environment and output.
import { createRequire } from "node:module";
import { main } from "../../dist/cli/program.js";

const { cache } = createRequire(import.meta.url);

process.on("message", async ({ id, args, folder, environment }) => {
  // A graph file reads its environment when it is loaded.
  for (const file of Object.keys(cache)) if (file.endsWith(".ts")) delete cache[file];
  process.chdir(folder);
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, environment);
  const output = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"]) {
    process[stream].write = (chunk, ...rest) => {
      output[stream] += String(chunk);
      rest.find((each) => typeof each === "function")?.();
      return true;
    };
  }
  const code = await main(args);
  process.send({ id, code, ...output });
});
process.send("ready");
