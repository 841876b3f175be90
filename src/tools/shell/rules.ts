import { posix } from "node:path";
import { isPattern, isProtected, isWide, isWideOutside } from "./places.ts";
import { Unreadable, type Word } from "./read.ts";

/** Says why a program must not run with these words; null where nothing is known against it. */
type Rule = (operands: readonly Word[], name: string) => string | null;

/** Programs that are refused whatever their words are. */
const NEVER =
  /^(?:mkfs(?:\..+)?|mke2fs|mkswap|fdisk|sfdisk|cfdisk|gdisk|sgdisk|parted|wipefs|blkdiscard|shutdown|reboot|halt|poweroff|init|telinit|killall5|userdel|groupdel|passwd|chpasswd|visudo|sudoedit|insmod|rmmod)$/;

/** Programs whose words are commands in a form that is not read here. */
const HIDING =
  /^(?:eval|trap|alias|enable|hash|parallel|expect|script|ssh|su|runuser|at|batch|screen|tmux|nsenter|unshare|watch|flock|pwsh|powershell|cmd)(?:\.exe)?$/;

/** What `{}` may stand for in one command of `find`; more is there to keep this judge busy. */
const MAX_PLACES = 1000;

const isOption = (word: Word) => word.text.startsWith("-");
const has = (operands: readonly Word[], pattern: RegExp) => operands.some(({ text }) => pattern.test(text));
const places = (operands: readonly Word[]) => operands.filter((word) => !isOption(word));
const shown = (word: Word) => word.text || "a variable";

/** What is dangerous has to be readable as a whole. */
function readable(rule: Rule): Rule {
  return (operands, name) => {
    if (operands.some((word) => word.isOpen)) throw new Unreadable(`${name} is given what only the shell knows`);
    return rule(operands, name);
  };
}

const remove = readable((operands, name) => {
  if (has(operands, /^--no-preserve-root$/)) return `${name} is told not to spare the root`;
  const isDeep = name !== "rm" || has(operands, /^-[a-zA-Z]*[rR]|^--recursive$/);
  const place = places(operands).find((word) => isProtected(word) || (isDeep && isWide(word)));
  return place ? `${name} would delete ${shown(place)}: a root, a home, a system's file or a whole folder` : null;
});

const permit = readable((operands, name) => {
  const isDeep = has(operands, /^-[a-zA-Z]*R|^--recursive$/);
  const place = places(operands).find((word) => isProtected(word) || (isDeep && isWideOutside(word)));
  return place ? `${name} would change who may use ${shown(place)}` : null;
});

const write: Rule = readable((operands, name) => {
  const place = places(operands).find(isProtected);
  return place ? `${name} would change ${shown(place)}, which belongs to the system` : null;
});

/** Like `write`, for programs that only read all but their last word, or all but what follows `-t`. */
const writeLast: Rule = readable((operands, name) => {
  const named = operands.flatMap((word, index) => {
    if (/^(?:-t|--target-directory)$/.test(word.text)) return operands.slice(index + 1, index + 2);
    const [, text] = /^(?:-t|--target-directory=)(.+)$/.exec(word.text) ?? [];
    return text === undefined ? [] : [{ ...word, text }];
  });
  return write(named.length > 0 ? named : places(operands).slice(-1), name);
});

/** Moving a place away is as good as deleting it. */
const move: Rule = readable((operands, name) => {
  const place = places(operands).slice(0, -1).find(isWideOutside);
  return place ? `mv would take ${shown(place)} away` : write(operands, name);
});

const mirror: Rule = readable((operands, name) => {
  const place = has(operands, /^--del/) ? places(operands).slice(-1).find(isWideOutside) : undefined;
  return place ? `rsync would delete what is in ${shown(place)}` : writeLast(operands, name);
});

/** Programs that say with an option where they write. */
function writeTo(option: RegExp): Rule {
  return (operands, name) => {
    const targets = operands.flatMap((word, index) => {
      const [said, text = ""] = option.exec(word.text) ?? [];
      if (said === undefined) return [];
      return text === "" ? operands.slice(index + 1, index + 2) : [{ ...word, text }];
    });
    return write(targets, name);
  };
}

const copyDisk = readable((operands) => {
  const target = operands.find(({ text }) => text.startsWith("of="));
  const place = target && { ...target, text: target.text.slice(3) };
  return place && isProtected(place) ? `dd would write to ${shown(place)}` : null;
});

const editInPlace: Rule = (operands, name) =>
  has(operands, /^-[a-zA-Z]*i|^--in-place/) ? write(operands, name) : null;

const git: Rule = (operands) => {
  const [command, ...rest] = afterGitOptions(operands);
  if (command?.isOpen) throw new Unreadable("git is given what only the shell knows");
  switch (command?.text ?? "") {
    case "push":
      return push(rest, "git push");
    case "clean":
      return has(rest, /^-[a-zA-Z]*f|^--force$/) ? "git clean would delete files that are kept nowhere else" : null;
    case "config":
      return has(rest, /^alias\.|^core\.(?:pager|editor|sshcommand|hookspath|fsmonitor)/i)
        ? "git config would change which programs git runs"
        : null;
    default:
      return null;
  }
};

function afterGitOptions(operands: readonly Word[]): readonly Word[] {
  for (let at = 0; at < operands.length; at++) {
    const word = operands[at];
    if (!word || !isOption(word)) return operands.slice(at);
    if (word.text === "-C") at += 1;
    else if (!/^--(?:no-pager|version|help|bare|git-dir=.*|work-tree=.*)$|^-[pPvh]$/.test(word.text))
      throw new Unreadable(`git's option ${word.text} may run other programs`);
  }
  return [];
}

const push = readable((operands) => {
  const isForced = has(operands, /^-[a-zA-Z]*[fd]|^--(?:force|mirror|delete|prune)$|^[+:]/);
  return isForced ? "git push would overwrite or delete what others have" : null;
});

const find: Rule = (operands) => {
  if (has(operands, /^-delete$/)) {
    if (operands.some((word) => word.isOpen)) throw new Unreadable("find -delete is given what only the shell knows");
    const place = startsOfFind(operands).find(isWideOutside);
    if (place) return `find would delete what is in ${shown(place)}`;
  }
  const target = operands.findIndex(({ text }) => /^-f(?:print|print0|ls|printf)$/.test(text));
  return target < 0 ? null : write(operands.slice(target + 1, target + 2), "find");
};

function startsOfFind(operands: readonly Word[]): readonly Word[] {
  const end = operands.findIndex((word) => isOption(word) || ["!", "("].includes(word.text));
  const starts = end < 0 ? operands : operands.slice(0, end);
  return starts.length > 0 ? starts : [{ text: ".", bare: ".", isOpen: false }];
}

/** The commands that `find` runs, with the places where it begins in place of what it finds. */
export function runByFind(operands: readonly Word[]): readonly (readonly Word[])[] {
  const starts = startsOfFind(operands);
  const commands: (readonly Word[])[] = [];
  for (let at = 0; at < operands.length; at++) {
    if (!/^-(?:exec|ok)(?:dir)?$/.test(operands[at]?.text ?? "")) continue;
    // Up to its end, everything belongs to that command: another -exec in it is its own.
    const begin = at + 1;
    for (at = begin; at < operands.length && !endsCommand(operands, at); at++);
    const command = operands.slice(begin, at);
    const places = command.filter(({ text }) => text === "{}").length;
    if (places * starts.length > MAX_PLACES) throw new Unreadable("find is given too many places");
    commands.push(command.flatMap((word) => (word.text === "{}" ? starts : [word])));
  }
  return commands;
}

/** A plus sign ends a command after `{}` only. */
function endsCommand(operands: readonly Word[], at: number): boolean {
  const text = operands[at]?.text;
  return text === ";" || (text === "+" && operands[at - 1]?.text === "{}");
}

const systemControl: Rule = (operands) =>
  has(operands, /^(?:poweroff|reboot|halt|kexec|suspend|hibernate|rescue|emergency|isolate)$/)
    ? "systemctl would stop this machine"
    : null;

const kill: Rule = (operands) => (has(operands.slice(1), /^-1$/) ? "kill would end every process" : null);

const awk: Rule = (operands) => {
  if (!has(operands, /system\s*\(|\|\s*["&g]|getline/)) return null;
  throw new Unreadable("awk's text runs programs");
};

const schedule: Rule = (operands) => (has(operands, /^-l$/) ? null : "crontab would change what runs by itself");

const RULES: Readonly<Record<string, Rule>> = {
  rm: remove,
  rmdir: remove,
  unlink: remove,
  shred: remove,
  chmod: permit,
  chown: permit,
  chgrp: permit,
  chattr: permit,
  setfacl: permit,
  tee: write,
  truncate: write,
  touch: write,
  mv: move,
  cp: writeLast,
  ln: writeLast,
  install: writeLast,
  rsync: mirror,
  scp: writeLast,
  dd: copyDisk,
  curl: writeTo(/^(?:-[a-zA-Z]*[oD]|--output(?:-dir)?=?|--dump-header=?)(.*)$/),
  wget: writeTo(/^(?:-[a-zA-Z]*[OPoa]|--output-(?:document|file)=?|--directory-prefix=?)(.*)$/),
  tar: writeTo(/^(?:-[a-zA-Z]*C|--directory=?)(.*)$/),
  unzip: writeTo(/^-d(.*)$/),
  sed: editInPlace,
  git,
  find,
  systemctl: systemControl,
  kill,
  awk,
  gawk: awk,
  mawk: awk,
  crontab: schedule,
};

/** Why a program must not run with these words; null where nothing is known against it. @throws Unreadable. */
export function knownDanger(name: string, operands: readonly Word[]): string | null {
  if (NEVER.test(name)) return `${name} is never run from here`;
  if (HIDING.test(name)) throw new Unreadable(`${name} may run anything`);
  return (Object.hasOwn(RULES, name) ? RULES[name] : undefined)?.(operands, name) ?? null;
}

/** Whether a program changes files: after a step into a folder that is too wide, it must not run. */
export function isChanging(name: string): boolean {
  return Object.hasOwn(RULES, name) && !/^(?:git|find|kill|systemctl|[gm]?awk|crontab|curl)$/.test(name);
}

/** What a program is called, whatever folder it is named with; some systems do not tell capitals apart. @throws Unreadable. */
export function programName(word: Word): string {
  if (word.isOpen) throw new Unreadable("which program runs, only the shell knows");
  const isTest = word.bare === "[" || word.bare === "[[";
  if (isPattern(word) && !isTest) throw new Unreadable("a pattern stands for a program");
  return posix.basename(word.text).toLowerCase();
}
