// Prints the closing line of a test run and fails on what must not be skipped.
import { existsSync, readFileSync } from "node:fs";

const [file, status] = process.argv.slice(2);
const report = existsSync(file) && readFileSync(file, "utf8").trim() ? JSON.parse(readFileSync(file, "utf8")) : null;
if (!report) {
  console.log("0 passed, 1 failed, 0 skipped");
  process.exit(1);
}
const tests = report.testResults.flatMap((result) =>
  result.assertionResults.map((each) => ({ ...each, file: result.name })),
);
const count = (...states) => tests.filter((each) => states.includes(each.status)).length;
const brokenFiles = report.testResults.filter(
  (result) => result.status === "failed" && result.assertionResults.length === 0,
).length;
const skipped = tests.filter((each) => ["pending", "skipped", "todo", "disabled"].includes(each.status));
for (const each of skipped) console.log(`skipped: ${each.fullName}`);
const failed = count("failed") + brokenFiles;
console.log(`${count("passed")} passed, ${failed} failed, ${skipped.length} skipped`);
process.exit(failed > 0 || skipped.length > 0 || status !== "0" || count("passed") === 0 ? 1 : 0);
