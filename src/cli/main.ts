#!/usr/bin/env node
import { main } from "./program.ts";
// Loaded with the commands that use it, it would note too late who has started them.
import "./stop-signals.ts";

// A closed pipe, as in `statecard history x | head`, is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

process.exitCode = await main(process.argv.slice(2));
