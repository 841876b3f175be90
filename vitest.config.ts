import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^statecard\/server$/, replacement: source("./src/server/index.ts") },
      { find: /^statecard\/testing$/, replacement: source("./src/testing/index.ts") },
      { find: /^statecard$/, replacement: source("./src/index.ts") },
    ],
  },
  test: {
    include: ["test/**/*.test.ts"],
    // Loading LangGraph anew for each file took a third of the time. What a test changes for its whole process
    // (fault points, the environment) it puts back itself.
    isolate: false,
    setupFiles: ["test/support/reset.ts"],
    // Some tests start servers and up to a dozen processes, and others do so at the same time.
    testTimeout: 240_000,
    hookTimeout: 60_000,
    // Many tests wait for other processes, so that one file more than there are processors keeps these busy.
    maxWorkers: availableParallelism() + 1,
  },
});
