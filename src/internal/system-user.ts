import { userInfo } from "node:os";

/** The operating system's user. Never from an environment variable: anybody can set those. */
export function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under a number that has no name.
    return `uid-${process.getuid?.() ?? "unknown"}`;
  }
}
