import { statSync, watch, type FSWatcher } from "node:fs";
import { hasCode } from "./files.ts";

/** Watches a set of folders, each on its own: not every system can watch what is inside them too. */
export class FolderWatchers {
  private readonly onSign: () => void;
  private readonly open = new Map<string, FSWatcher>();
  /** Folders that cannot be watched, and why; the system may have no watchers left. */
  readonly blind = new Map<string, string>();

  constructor(onSign: () => void) {
    this.onSign = onSign;
  }

  /**
   * Watches these folders and no others.
   *
   * @returns whether one had to be opened: then changes before that may have been missed.
   */
  watchOnly(folders: readonly string[]): boolean {
    const wanted = new Map(folders.flatMap((folder) => keyOf(folder).map((key) => [key, folder] as const)));
    for (const [key, watcher] of this.open) {
      if (wanted.has(key)) continue;
      watcher.close();
      this.open.delete(key);
    }
    this.blind.clear();
    let hasOpened = false;
    for (const [key, folder] of wanted) {
      if (this.open.has(key)) continue;
      try {
        // A folder that is removed may raise an error, which is a sign like any other.
        this.open.set(key, watch(folder, this.onSign).on("error", this.onSign));
        hasOpened = true;
      } catch (error) {
        if (hasCode(error, "ENOENT", "ENOTDIR")) hasOpened = true;
        else this.blind.set(folder, error instanceof Error ? error.message : String(error));
      }
    }
    return hasOpened;
  }

  close(): void {
    for (const watcher of this.open.values()) watcher.close();
    this.open.clear();
  }
}

/** A folder that was replaced has the same path, and a watcher of the old one sees nothing more. */
function keyOf(folder: string): readonly string[] {
  try {
    const { dev, ino, birthtimeMs } = statSync(folder);
    return [`${folder}\0${dev}\0${ino}\0${birthtimeMs}`];
  } catch {
    return [];
  }
}
