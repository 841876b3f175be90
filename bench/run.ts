import { isMissed, printed, save, type Report } from "./report.ts";

const BENCHMARKS: Readonly<Record<string, () => Promise<{ run: () => Promise<Report | null> }>>> = {
  overhead: () => import("./overhead.ts"),
  crash: () => import("./crash.ts"),
  batch: () => import("./batch.ts"),
  distributed: () => import("./distributed.ts"),
  context: () => import("./context.ts"),
  tools: () => import("./tools.ts"),
  skills: () => import("./skills.ts"),
  memory: () => import("./memory.ts"),
  detective: () => import("./detective.ts"),
  horizon: () => import("./horizon.ts"),
  http: () => import("./http.ts"),
};

// Tracing sends every step over the network, which is not what is measured here.
for (const name of Object.keys(process.env)) {
  if (/^LANG(?:SMITH|CHAIN)_TRACING/.test(name)) delete process.env[name];
}

process.exitCode = await main(process.argv.slice(2));

async function main(given: readonly string[]): Promise<number> {
  const names = given.filter((argument) => !argument.startsWith("--"));
  const unknown = [
    ...names.filter((name) => !Object.hasOwn(BENCHMARKS, name)),
    ...given.filter((argument) => argument.startsWith("--") && argument !== "--check"),
  ];
  if (unknown.length > 0) {
    const known = Object.keys(BENCHMARKS).join(", ");
    process.stderr.write(
      `unknown: ${unknown.join(", ")}; usage: npm run bench -- [NAME] [--check], NAME one of: ${known}\n`,
    );
    return 2;
  }
  let missed = 0;
  for (const [name, load] of Object.entries(BENCHMARKS)) {
    if (names.length > 0 && !names.includes(name)) continue;
    const report = await (await load()).run();
    // Skipped; it has said why.
    if (report === null) continue;
    save(report);
    process.stdout.write(printed(report));
    missed += report.limits.filter(isMissed).length;
  }
  return given.includes("--check") && missed > 0 ? 1 : 0;
}
