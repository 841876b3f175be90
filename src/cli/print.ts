import { EXIT } from "./exit.ts";
import type { CommonOptions } from "./options.ts";

/** Prints what a command has to say: for a program where it asked for JSON, else for a person, line by line. */
export function print({ json }: CommonOptions, value: unknown, lines: string | readonly string[]): number {
  process.stdout.write(`${json ? JSON.stringify(value, null, 2) : [lines].flat().join("\n")}\n`);
  return EXIT.ok;
}
