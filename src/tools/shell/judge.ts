import { isProtected, isTopFolder } from "./places.ts";
import { fileOnly, refuseCode, shellText } from "./interpreters.ts";
import { readShell, Unreadable, type ShellCommand, type Word } from "./read.ts";
import { isChanging, knownDanger, programName, runByFind } from "./rules.ts";
import { afterSettings, refuseSteering, wrapped } from "./wrappers.ts";

/** Which programs may run beside what is always refused. */
export interface CommandLimits {
  /** Only these programs, named as they are written in a command. */
  readonly allow?: readonly string[];
  /** Not these either: a program (`terraform`), or one with some of its words (`npm publish`). */
  readonly forbid?: readonly string[];
}

/** Why a command line must not run; null where nothing is known against it. Pure. */
export function judgeCommandLine(text: string, limits: CommandLimits): string | null {
  return judged(() => new Judge(limits).line(readShell(text)));
}

/** The same for a program and its arguments that no shell will see. */
export function judgeArguments(words: readonly string[], limits: CommandLimits): string | null {
  const asWords = words.map((text) => ({ text, bare: "\0".repeat(text.length), isOpen: false }));
  return judged(() => new Judge(limits).line([{ words: asWords, writes: [], reads: [] }]));
}

function judged(judge: () => string | null): string | null {
  try {
    return judge();
  } catch (error) {
    if (error instanceof Unreadable) return `it cannot be read: ${error.message}; write it plainly`;
    throw error;
  }
}

class Judge {
  private readonly limits: CommandLimits;
  private depth = 0;
  private isElsewhere = false;
  private isChanging = false;

  constructor(limits: CommandLimits) {
    this.limits = limits;
  }

  line(commands: readonly ShellCommand[]): string | null {
    for (const command of commands) {
      const reason = this.files(command) ?? this.program(afterSettings(command.words));
      if (reason) return reason;
    }
    const isBlind = this.isElsewhere && this.isChanging;
    return isBlind ? "it goes to another folder and changes files there; name the files instead" : null;
  }

  private files({ writes, reads }: ShellCommand): string | null {
    if (writes.some((word) => word.isOpen)) throw new Unreadable("which file is written, only the shell knows");
    const place = writes.find(isProtected);
    if (place) return `it would write to ${place.text}, which belongs to the system`;
    const isSocket = reads.some(({ text }) => /^\/dev\/(?:tcp|udp)\//.test(text));
    if (writes.length > 0) this.isChanging = true;
    return isSocket ? "it would open a connection through /dev" : null;
  }

  private program(words: readonly Word[]): string | null {
    const [word, ...operands] = words;
    if (!word) return null;
    const name = programName(word);
    const reason = this.byList(word.text, name, operands) ?? knownDanger(name, operands);
    if (reason) return reason;
    this.isChanging ||= isChanging(name);
    if (name === "cd" || name === "pushd") this.isElsewhere ||= leadsElsewhere(operands);
    refuseCode(name, operands);
    if (/^(?:export|declare|typeset|readonly|local)$/.test(name)) operands.forEach(refuseSteering);
    if (/^(?:source|\.)$/.test(name)) operands.slice(0, 1).forEach((file) => fileOnly(name, file));
    return this.inside(name, operands);
  }

  /** The commands that this one runs. */
  private inside(name: string, operands: readonly Word[]): string | null {
    const text = shellText(name, operands);
    if (text) return this.deeper(() => this.line(readShell(text.text, this.depth)));
    const commands = name === "find" ? runByFind(operands) : [wrapped(name, operands) ?? []];
    return this.deeper(() => commands.map((words) => this.program(words)).find((reason) => reason !== null) ?? null);
  }

  private deeper(judge: () => string | null): string | null {
    this.depth += 1;
    const reason = judge();
    this.depth -= 1;
    return reason;
  }

  private byList(written: string, name: string, operands: readonly Word[]): string | null {
    const { allow, forbid = [] } = this.limits;
    if (allow && !allow.includes(written)) return `${written} may not run; only ${allow.join(", ")} may`;
    const found = forbid.find((entry) => isEntry(entry, name, operands));
    return found === undefined ? null : `${found} may not run`;
  }
}

/** Whether a command is a program of the list, with the words that the list names, in this order. */
function isEntry(entry: string, name: string, operands: readonly Word[]): boolean {
  const [program, ...wanted] = entry.trim().split(/\s+/);
  if (program?.toLowerCase() !== name) return false;
  if (wanted.length > 0 && operands.some((word) => word.isOpen)) {
    throw new Unreadable(`${name} is given what only the shell knows`);
  }
  let found = 0;
  for (const { text } of operands) if (text === wanted[found]) found += 1;
  return found === wanted.length;
}

function leadsElsewhere(operands: readonly Word[]): boolean {
  const place = operands.find(({ text, isOpen }) => isOpen || text === "-" || !text.startsWith("-"));
  return !place || place.isOpen || isTopFolder(place);
}
