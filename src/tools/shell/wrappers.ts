import { Unreadable, type Word } from "./read.ts";

/** A program that runs another one, whose name follows after its own options. */
interface Wrapper {
  /** Options that stand alone. */
  readonly flags?: RegExp;
  /** Options whose value is the next word. */
  readonly valued?: RegExp;
  /** Words between the options and the program. */
  readonly operands?: number;
  /** Settings such as `NAME=value` may stand before the program. */
  readonly hasSettings?: boolean;
  /** It adds words to the command that are not known. */
  readonly adds?: boolean;
}

const WRAPPERS: Readonly<Record<string, Wrapper>> = {
  sudo: {
    flags: /^-[AbEHnPSis]+$|^-[ugp].+|^--(?:user|group|preserve-env)=|^--(?:preserve-env|non-interactive|stdin|login)$/,
    valued: /^-[ugpChDRTU]$|^--(?:user|group|prompt|chdir|host)$/,
    hasSettings: true,
  },
  doas: { flags: /^-[ns]+$/, valued: /^-[uC]$/ },
  env: {
    flags: /^-[i0v]*$|^--(?:ignore-environment|null|debug)$|^--(?:unset|chdir)=/,
    valued: /^-[uC]$|^--(?:unset|chdir)$/,
    hasSettings: true,
  },
  nohup: {},
  setsid: { flags: /^-[cfw]+$/ },
  command: { flags: /^-[pvV]+$/ },
  builtin: {},
  exec: { flags: /^-[cl]+$/, valued: /^-a$/ },
  time: { flags: /^-[pv]+$/, valued: /^-[fo]$/ },
  nice: { flags: /^-\d+$|^-n-?\d+$|^--adjustment=/, valued: /^-n$|^--adjustment$/ },
  ionice: { flags: /^-[cn]\d$|^-t$/, valued: /^-[cn]$/ },
  timeout: {
    flags: /^-v$|^--(?:foreground|preserve-status|verbose)$|^--(?:signal|kill-after)=|^-[ks].+/,
    valued: /^-[ks]$|^--(?:signal|kill-after)$/,
    operands: 1,
  },
  stdbuf: { flags: /^-[ioe].+|^--(?:input|output|error)=/, valued: /^-[ioe]$/ },
  chroot: { flags: /^--(?:userspec|groups)=/, operands: 1 },
  busybox: {},
  toybox: {},
  xargs: {
    flags: /^-[0rtxp]+$|^-[nPILdsE].+|^--(?:null|no-run-if-empty|verbose)$|^--[a-z-]+=/,
    valued: /^-[nPILdsaE]$/,
    adds: true,
  },
};

const SETTING = /^[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=/;
/** Settings that decide which program a name stands for, or what runs beside it. */
const STEERING =
  /^(?:PATH|IFS|ENV|BASH_ENV|PS4|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|LD_\w+|DYLD_\w+|NODE_OPTIONS|PYTHON\w+|PERL5\w+|RUBYOPT|GIT_\w+|PAGER|EDITOR|VISUAL)\b/;

/**
 * Leaves out the settings before a program: `A=1 B=2 program`. The shell knows them by signs that are not
 * quoted; a program such as `env` does not see quotes.
 *
 * @throws Unreadable where one changes what runs.
 */
export function afterSettings(words: readonly Word[], as: "bare" | "text" = "bare"): readonly Word[] {
  let count = 0;
  for (; SETTING.test(words[count]?.[as] ?? ""); count++) {
    words.slice(count, count + 1).forEach(refuseSteering);
  }
  return words.slice(count);
}

/** @throws Unreadable for a setting that decides what runs. */
export function refuseSteering({ text }: Word): void {
  const name = STEERING.exec(text)?.[0];
  if (name !== undefined) throw new Unreadable(`it changes ${name}, which decides what runs`);
}

/** The command that a program such as `sudo` runs; null where it is no such program. @throws Unreadable. */
export function wrapped(name: string, operands: readonly Word[]): readonly Word[] | null {
  const wrapper = Object.hasOwn(WRAPPERS, name) ? WRAPPERS[name] : undefined;
  if (!wrapper) return null;
  let at = 0;
  for (let word = operands[at]; word && mayBeOption(word); word = operands[at]) {
    if (word.text === "--" && !word.isOpen) {
      at += 1;
      break;
    }
    if (!word.isOpen && wrapper.valued?.test(word.text)) at += 2;
    else if (!word.isOpen && wrapper.flags?.test(word.text)) at += 1;
    else throw new Unreadable(`the option ${word.text || "from a variable"} of ${name} may change what runs`);
  }
  if (wrapper.hasSettings) at += operands.slice(at).length - afterSettings(operands.slice(at), "text").length;
  const rest = operands.slice(at + (wrapper.operands ?? 0));
  return wrapper.adds && rest.length > 0 ? [...rest, { text: "", bare: "\0", isOpen: true }] : rest;
}

/** Whether a word is an option, or begins with what only the shell knows. */
function mayBeOption(word: Word): boolean {
  return word.text.startsWith("-") || (word.isOpen && word.bare.startsWith("\0"));
}
