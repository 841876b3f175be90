import { countTokens } from "../../internal/tokens.ts";
import { attachedLines, statusBar } from "../status-bar.ts";
import { TECHNIQUES, type StatusBarInput, type StatusBarOptions, type Technique } from "./input.ts";

/** Techniques that somebody who looks at a prompt switches on and off. */
export interface Switches {
  readonly on: readonly Technique[];
  readonly off: readonly Technique[];
}

/** The options with some techniques switched. Pure. */
export function switched(options: StatusBarOptions, { on, off }: Switches): StatusBarOptions {
  const set = (names: readonly Technique[], value: boolean) => Object.fromEntries(names.map((name) => [name, value]));
  // What was given with `system` is not to be lost by switching it on.
  const isGiven = typeof options.system === "object";
  return {
    ...options,
    ...set(
      on.filter((name) => name !== "system" || !isGiven),
      true,
    ),
    ...set(off, false),
  };
}

/** What one technique says in a prompt. */
export interface TechniqueShare {
  readonly technique: Technique;
  readonly lines: readonly string[];
  readonly tokens: number;
}

/** What each technique that is on says in the next prompt, and in how many tokens (o200k). Pure. */
export function techniqueShares(input: StatusBarInput): readonly TechniqueShare[] {
  const { options = {} } = input;
  return TECHNIQUES.map((technique) => {
    const off = TECHNIQUES.filter((other) => other !== technique);
    const { bar, attached } = statusBar({ ...input, options: switched(options, { on: [], off }) });
    const lines = [...attachedLines(attached), ...bar];
    return { technique, lines, tokens: lines.length > 0 ? countTokens(lines.join("\n")) : 0 };
  });
}
