import { createHash } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { isOpenDatabase } from "../../internal/open-databases.ts";
import type { Resource } from "../../state/resources.ts";
import { isInside } from "../inside.ts";
import { ToolError } from "../tool-error.ts";

const MAX_FILE_BYTES = 1_000_000;
/** The most files that are listed. */
export const MAX_FILES = 5000;

/** What no tool lists, reads or writes: what begins with a dot, where keys and histories lie, and what is installed or built. */
const HIDDEN = /^\.|^(?:node_modules|dist|coverage)$/;

/** A file as it is now. */
export interface FileNow {
  readonly text: string;
  readonly checksum: string;
}

/** SHA-256 of a text's bytes, the first 16 hexadecimal digits. */
export function checksumOf(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex").slice(0, 16);
}

/** The one folder that file tools work in. Every path is relative to it; none leads out or through a link. */
export class Folder {
  readonly root: string;

  constructor(root: string) {
    this.root = resolve(root);
  }

  /**
   * A path as it is kept: without `.` and `..`, with `/`.
   *
   * @throws ToolError OUTSIDE, HIDDEN or LINK.
   */
  plain(path: string): string {
    const parts = path
      .replaceAll("\\", "/")
      .split("/")
      .filter((part) => part !== "" && part !== ".");
    const isPlain = !/^[/\\~]|^[a-z]:/i.test(path) && !path.includes("\0") && !parts.includes("..");
    if (!isPlain || parts.length === 0 || !isInside([this.root], parts.join("/"))) {
      throw new ToolError(`${JSON.stringify(path.slice(0, 200))} is no path inside the project's folder`, {
        type: "OUTSIDE",
        hint: "give paths as listFiles does, relative to the project's folder",
      });
    }
    if (parts.some((part) => HIDDEN.test(part))) {
      throw new ToolError(`${parts.join("/")} is hidden, installed or built, and not for these tools`, {
        type: "HIDDEN",
      });
    }
    // Inside the folder too, one could lead to what is hidden, and a write would put a file in its place.
    if (parts.some((_part, index) => isLink(join(this.root, ...parts.slice(0, index + 1))))) {
      throw new ToolError(`${parts.join("/")} is or leads through a link, and not for these tools`, { type: "LINK" });
    }
    return parts.join("/");
  }

  /** A file's text and checksum; null where there is none. */
  read(path: string): FileNow | null {
    const file = join(this.root, path);
    const found = statSync(file, { throwIfNoEntry: false });
    if (!found) return null;
    if (!found.isFile()) throw new ToolError(`${path} is no file`, { type: "NOT_A_FILE" });
    if (found.size > MAX_FILE_BYTES) {
      throw new ToolError(`${path} has ${found.size} bytes; these tools take at most ${MAX_FILE_BYTES}`, {
        type: "TOO_LARGE",
      });
    }
    if (isOpenDatabase(file))
      throw new ToolError(`${path} is a database in use, and not for these tools`, { type: "IN_USE" });
    const bytes = readFileSync(file);
    if (bytes.includes(0)) throw new ToolError(`${path} is no text`, { type: "NOT_TEXT" });
    const text = bytes.toString();
    if (!Buffer.from(text).equals(bytes)) throw new ToolError(`${path} is no UTF-8 text`, { type: "NOT_TEXT" });
    return { text, checksum: checksumOf(bytes) };
  }

  /** Writes a whole file at once: whoever reads it, after a crash too, finds the old or the new text. */
  write(path: string, text: string): string {
    const file = join(this.root, path);
    mkdirSync(dirname(file), { recursive: true });
    // One writer a file, so a name is enough; what an earlier crash has left there is written over.
    const aside = join(dirname(file), `.${checksumOf(path)}.statecard`);
    const mode = statSync(file, { throwIfNoEntry: false })?.mode;
    const handle = openSync(aside, "w", mode === undefined ? 0o644 : mode & 0o777);
    try {
      writeFileSync(handle, text);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    try {
      renameSync(aside, file);
    } catch (error) {
      rmSync(aside, { force: true });
      throw error;
    }
    return checksumOf(text);
  }

  /**
   * The paths of all files below a path, sorted; of very many, the first.
   *
   * @throws ToolError NOT_FOUND, where there is no such folder.
   */
  list(below: string): readonly string[] {
    if (!statSync(join(this.root, below), { throwIfNoEntry: false })?.isDirectory()) {
      throw new ToolError(`there is no folder ${below || this.root}`, {
        type: "NOT_FOUND",
        hint: "listFiles without below says which files there are",
      });
    }
    const found: string[] = [];
    const visit = (path: string) => {
      const entries = readdirSync(join(this.root, path), { withFileTypes: true });
      for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
        if (HIDDEN.test(entry.name) || found.length >= MAX_FILES) continue;
        const inner = path === "" ? entry.name : `${path}/${entry.name}`;
        if (entry.isDirectory()) visit(inner);
        // Links are left out: they could lead anywhere, and in circles.
        else if (entry.isFile()) found.push(inner);
      }
    };
    visit(below);
    return found;
  }

  /** What has become of known files that are no longer as the task knows them. */
  drift(known: readonly Resource[]): readonly Resource[] {
    return known.flatMap((resource): Resource[] => {
      const now = this.checksum(resource.path);
      if (now === resource.checksum) return [];
      return [{ ...resource, status: now === null ? "gone" : "changed outside" }];
    });
  }

  private checksum(path: string): string | null {
    try {
      return this.read(this.plain(path))?.checksum ?? null;
    } catch (error) {
      if (error instanceof ToolError) return "unreadable";
      throw error;
    }
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}
