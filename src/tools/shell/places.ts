import { posix } from "node:path";
import type { Word } from "./read.ts";

const SYSTEM = /^\/(?:bin|boot|dev|etc|lib\w*|private\/etc|proc|root|sbin|sys|usr|System|Library)(?:\/|$)/;
const HARMLESS_DEVICE = /^\/dev\/(?:null|stdout|stderr|tty|fd\/\d+)$/;
/** Folders whose members are somebody's home, or a whole disk, or a service's data. */
const MEMBERS = /^\/(?:home|Users|mnt|media|Volumes|var|opt|private|srv|var\/(?:lib|log|mail|spool|www))\/[^/]*$/;
const TOP = /^\/$|^\/(?:home|Users|mnt|media|Volumes|var|opt|private|srv|run)(?:\/)?$|^\.\.(?:\/|$)/;
/** What runs the next time that somebody logs in, connects or commits. */
const STARTUP =
  /(?:^|\/)(?:\.ssh(?:\/.*)?|\.git\/hooks(?:\/.*)?|\.(?:bashrc|bash_profile|bash_login|profile|zshrc|zprofile|zshenv|zlogin))$/;

/** Whether a word is a pattern that the shell fills in with names of files. */
export function isPattern(word: Word): boolean {
  return /[*?[]/.test(word.bare);
}

/** Whether a file belongs to the system, or is one that runs by itself later. */
export function isProtected(word: Word): boolean {
  const place = normal(word);
  // Where a relative path climbs to is not known; what it climbs for is.
  const absolute = place.replace(/^(?:\.\.\/)+/, "/");
  return (SYSTEM.test(absolute) && !HARMLESS_DEVICE.test(absolute)) || STARTUP.test(absolute);
}

/** Whether a place is too much to be deleted or opened as a whole: a root, a home, a system folder, here and above. */
export function isWide(word: Word): boolean {
  return isWideOutside(word) || [".", ""].includes(contents(normal(word), word));
}

/** The same without the folder where the command runs. */
export function isWideOutside(word: Word): boolean {
  if (word.text.startsWith("~") && /(?:^|\/)\.\.(?:\/|$)/.test(word.text)) return true;
  const place = contents(normal(word), word);
  const parts = place.split("/").filter(Boolean);
  if (place.startsWith("~")) return parts.length < 2;
  if (place === ".." || place.startsWith("../")) return true;
  if (!place.startsWith("/")) return false;
  if (parts.length < 2 || MEMBERS.test(place) || SYSTEM.test(place)) return true;
  return isPattern(word) && parts.slice(0, 2).some((part) => /[*?[]/.test(part));
}

/** Whether a relative path means something bad there: a root, a home, a system folder, or what is above. */
export function isTopFolder(word: Word): boolean {
  const place = normal(word);
  return isProtected(word) || TOP.test(place) || (place.startsWith("~") && isWideOutside(word));
}

function normal(word: Word): string {
  const place = posix.normalize(word.text).replace(/\/$/, "");
  return place === "" ? "/" : place;
}

/** `x/*` is all that is in `x`. */
function contents(place: string, word: Word): string {
  if (!isPattern(word)) return place;
  const parts = place.split("/");
  while (/^[.*?]*[*?][.*?]*$/.test(parts.at(-1) ?? "")) parts.pop();
  const left = parts.join("/");
  return left === "" && place.startsWith("/") ? "/" : left;
}
