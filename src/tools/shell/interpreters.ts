import { Unreadable, type Word } from "./read.ts";

const SHELL = /^(?:ba|z|da|k|a|fi)?sh$/;
const SHELL_VALUE = /^[-+][oO]$|^--(?:rcfile|init-file)$/;
/** Other languages: the options that take a program as text. */
const CODE: readonly (readonly [RegExp, RegExp])[] = [
  [/^(?:python|pypy)[\d.]*$/, /^-[bBdEhiIOPqRsSuvVx]*c/],
  [/^perl[\d.]*$/, /^-[\w]*[eE]/],
  [/^ruby[\d.]*$/, /^-[\w]*e/],
  [/^(?:node|nodejs|bun|deno|tsx)$/, /^-(?:e|p|pe)$|^--(?:eval|print)(?:=|$)|^eval$/],
  [/^php[\d.]*$/, /^-[rBRE]/],
  [/^(?:lua|luajit)[\d.]*$/, /^-e/],
  [/^(?:rscript|osascript|julia|groovy|scala|elixir)$/, /^-e/],
];
/** The options of these whose value is the next word. */
const CODE_VALUE = /^-[WXIrCl]$|^--(?:require|import|loader|env-file|conditions)$/;
const INFORMATION = /^(?:--?version|-[vVh]|--help|--test)$/;

/**
 * Looks at the words of a shell.
 *
 * @returns the text that it runs as commands; null where it runs a file; undefined where it is no shell.
 * @throws Unreadable where it reads its commands from somewhere else.
 */
export function shellText(name: string, operands: readonly Word[]): Word | null | undefined {
  if (!SHELL.test(name)) return undefined;
  let isText = false;
  for (let at = 0; at < operands.length; at++) {
    const word = operands[at];
    if (!word) break;
    if (word.isOpen) throw new Unreadable(`what ${name} runs, only the shell knows`);
    if (SHELL_VALUE.test(word.text)) at += 1;
    else if (/^[-+]./.test(word.text) && word.text !== "--") {
      if (INFORMATION.test(word.text) && operands.length === 1) return null;
      isText ||= /^-[a-zA-Z]*c/.test(word.text);
      if (/^-[a-zA-Z]*s/.test(word.text)) throw new Unreadable(`${name} reads its commands from its input`);
    } else if (word.text !== "--") {
      if (isText) return word;
      return fileOnly(name, word);
    }
  }
  throw new Unreadable(`${name} reads its commands from its input`);
}

/** Refuses programs in other languages that stand in the command itself or come from its input. @throws Unreadable. */
export function refuseCode(name: string, operands: readonly Word[]): void {
  const code = CODE.find(([program]) => program.test(name))?.[1];
  if (!code) return;
  const isInformation = operands.length > 0 && operands.every(({ text }) => INFORMATION.test(text));
  if (isInformation) return;
  for (let at = 0; at < operands.length; at++) {
    const word = operands[at];
    if (!word) break;
    if (word.isOpen && word.bare.startsWith("\0")) throw new Unreadable(`what ${name} runs, only the shell knows`);
    if (code.test(word.text)) throw new Unreadable(`a program for ${name} stands in the command; put it into a file`);
    if (name.startsWith("python") && word.text === "-m") return;
    if (CODE_VALUE.test(word.text)) at += 1;
    else if (word.text === "-" || !word.text.startsWith("-")) return void fileOnly(name, word);
  }
  if (operands.some(({ text }) => INFORMATION.test(text))) return;
  throw new Unreadable(`${name} reads its program from its input`);
}

/** Refuses what is no file of its own: the program's input, or one of the system's. @throws Unreadable. */
export function fileOnly(name: string, word: Word): null {
  if (word.isOpen) throw new Unreadable(`which file ${name} runs, only the shell knows`);
  if (word.text === "-" || /^\/(?:dev|proc)\//.test(word.text)) {
    throw new Unreadable(`${name} reads its program from its input`);
  }
  return null;
}
