import type { Previews } from "../compile/turns.ts";
import { TECHNIQUES, type Technique } from "../view/status-bar/input.ts";
import type { Switches } from "../view/status-bar/preview.ts";
import { usage } from "./exit.ts";
import { count } from "./terminal.ts";

/** The options that switch run-time facts in a preview. */
export interface SwitchOptions {
  readonly with?: readonly string[];
  readonly without?: readonly string[];
}

/**
 * What `--with` and `--without` ask for. `all` stands for every technique that the other one does not name.
 *
 * @throws USAGE for what is no technique, and where both name the same one.
 */
export function switchesOf(options: SwitchOptions): Switches {
  const on = named("--with", options.with ?? []);
  const off = named("--without", options.without ?? []);
  const both = on.find((name) => off.includes(name));
  if (both) throw usage(`--with and --without both name ${both}; choose one`);
  const rest = (others: readonly Switched[]) => TECHNIQUES.filter((technique) => !others.includes(technique));
  return { on: spelledOut(on, rest(off)), off: spelledOut(off, rest(on)) };
}

type Switched = Technique | "all";

function named(option: string, names: readonly string[]): readonly Switched[] {
  const known: readonly Switched[] = [...TECHNIQUES, "all"];
  return names.map((name) => {
    const found = known.find((one) => one === name);
    if (!found) throw usage(`${option} ${name}: there are ${known.join(", ")}`);
    return found;
  });
}

function spelledOut(names: readonly Switched[], all: readonly Technique[]): readonly Technique[] {
  return names.includes("all") ? all : names.filter((name) => name !== "all");
}

/** What each technique takes of the next prompt, and whether the bar is replaced or kept. */
export function techniqueTable({ shares, bar }: Previews, { off }: Switches): string {
  const rows = shares.map(({ technique, tokens }) => {
    const note = off.includes(technique) ? "   off" : tokens === 0 ? "   nothing to say" : "";
    return `${technique.padEnd(10)} ${count(tokens).padStart(7)}${note}`;
  });
  return ["facts       tokens", ...rows, `bar: ${bar.explanation}`].join("\n");
}
