import { open, stat, type FileHandle } from "node:fs/promises";
import { pipeline, type Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { isOpenDatabase } from "statecard";

const CHUNK_BYTES = 256 * 1024;
/** How much of the beginning decides whether it is text. */
const SNIFFED_BYTES = 8192;
const MOST_NULS = 0.01;
const MOST_ODD = 0.1;

/** Why a log cannot be read, and what to do about it. */
export class LogError extends Error {
  override readonly name = "LogError";

  readonly type: string;
  readonly advice: string;

  constructor(type: string, message: string, advice: string) {
    super(message);
    this.type = type;
    this.advice = advice;
  }
}

/** A log that is open for reading once, from its beginning. */
export interface OpenLog {
  /** Its size when it was opened; packed, where it is packed. What is written later is not read. */
  readonly bytes: number;
  /** When it was last written to, in milliseconds since 1970. */
  readonly modifiedMs: number;
  readonly packed: "gzip" | null;
  readonly chunks: AsyncIterable<Buffer>;
  /** What happened to the file meanwhile; to be asked when the chunks have ended. */
  changes(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/**
 * Opens a log, whatever its size. A gzip'd one is unpacked while it is read.
 *
 * @throws LogError where it is missing, no plain file, unreadable, packed otherwise; the chunks throw it for a
 * binary or damaged one.
 */
export async function openLog(path: string, signal: AbortSignal): Promise<OpenLog> {
  const info = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw unreadable(path, error);
  });
  // Opening a pipe would wait for somebody to write into it.
  if (!info.isFile()) {
    const what = info.isDirectory() ? "a folder" : "a pipe, socket or device";
    throw new LogError("NOT_A_FILE", `${path} is ${what}, no log file`, "name a plain file");
  }
  if (isOpenDatabase(path)) {
    throw new LogError("NOT_A_FILE", `${path} is a database in use, no log file`, "name a log file");
  }
  const handle = await open(path).catch((error: NodeJS.ErrnoException) => {
    throw unreadable(path, error);
  });
  try {
    const opened = await handle.stat();
    const packed = await packingOf(handle, path);
    const notes: string[] = [];
    const read = { bytes: 0 };
    const raw = rawChunks(handle, opened.size, read, signal);
    const chunks = textOnly(packed ? unpacked(raw, notes, path) : raw, path);
    return {
      bytes: opened.size,
      modifiedMs: opened.mtimeMs,
      packed,
      chunks,
      changes: async () => [...notes, ...(await changesOf(handle, path, opened, read.bytes))],
      close: () => handle.close(),
    };
  } catch (error) {
    await handle.close();
    throw error instanceof LogError ? error : unreadable(path, error as NodeJS.ErrnoException);
  }
}

function unreadable(path: string, error: NodeJS.ErrnoException): LogError {
  const { code, message } = error;
  if (code === "ENOENT" || code === "ENOTDIR") {
    return new LogError("NOT_FOUND", `there is no file ${path}`, "ask for the right path");
  }
  if (code === "EACCES" || code === "EPERM") {
    return new LogError("UNREADABLE", `${path} may not be read`, "ask for the right to read it, or for a copy");
  }
  return new LogError("UNREADABLE", `${path} cannot be read: ${message}`, "ask for a copy of it");
}

const PACKED: readonly { readonly magic: readonly number[]; readonly name: string; readonly command: string }[] = [
  { magic: [0x28, 0xb5, 0x2f, 0xfd], name: "zstd", command: "zstd -d" },
  { magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a], name: "xz", command: "xz -dk" },
  { magic: [0x42, 0x5a, 0x68], name: "bzip2", command: "bzip2 -dk" },
  { magic: [0x50, 0x4b, 0x03, 0x04], name: "zip", command: "unzip" },
];

async function packingOf(handle: FileHandle, path: string): Promise<"gzip" | null> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(8), 0, 8, 0);
  const begins = (magic: readonly number[]) =>
    bytesRead >= magic.length && magic.every((byte, index) => buffer[index] === byte);
  const other = PACKED.find(({ magic }) => begins(magic));
  if (other) throw new LogError("PACKED", `${path} is packed with ${other.name}`, `unpack it first: ${other.command}`);
  if (begins([0xff, 0xfe]) || begins([0xfe, 0xff])) {
    throw new LogError("BINARY", `${path} is text in UTF-16`, "convert it first: iconv -f UTF-16 -t UTF-8");
  }
  return begins([0x1f, 0x8b]) ? "gzip" : null;
}

/** The file as it was when it was opened: what is added meanwhile is left out, so that the reading ends. */
async function* rawChunks(
  handle: FileHandle,
  size: number,
  read: { bytes: number },
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  // Files of the system, such as those in /proc, say that they have no bytes and have some.
  const end = size > 0 ? size : Infinity;
  while (read.bytes < end) {
    signal.throwIfAborted();
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, end - read.bytes));
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, read.bytes);
    if (bytesRead === 0) return;
    read.bytes += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}

async function* unpacked(raw: AsyncGenerator<Buffer>, notes: string[], path: string): AsyncGenerator<Buffer> {
  const gunzip: Readable = pipeline(raw, createGunzip({ chunkSize: CHUNK_BYTES }), () => {});
  try {
    yield* gunzip as AsyncIterable<Buffer>;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "Z_BUF_ERROR") notes.push("the gzip'd file ends in the middle: what could be unpacked was read");
    else if (code?.startsWith("Z_")) {
      throw new LogError("DAMAGED", `${path} begins like gzip and cannot be unpacked`, "ask for an intact copy");
    } else throw error;
  }
}

async function* textOnly(chunks: AsyncIterable<Buffer>, path: string): AsyncGenerator<Buffer> {
  let isFirst = true;
  try {
    for await (const chunk of chunks) {
      const reason = isFirst ? binaryReason(chunk.subarray(0, SNIFFED_BYTES)) : null;
      if (reason !== null) throw new LogError("BINARY", `${path} is no text: ${reason}`, "ask for the log as text");
      isFirst = false;
      yield chunk;
    }
  } catch (error) {
    const isOurs = error instanceof LogError || (error as Error).name === "AbortError";
    throw isOurs ? error : unreadable(path, error as NodeJS.ErrnoException);
  }
}

/** Why bytes are no text. A few odd ones are: a serial line or a crash leaves such. */
function binaryReason(bytes: Buffer): string | null {
  let nuls = 0;
  let odd = 0;
  for (const byte of bytes) {
    if (byte === 0) nuls++;
    if (byte < 32 && byte !== 9 && byte !== 10 && byte !== 13 && byte !== 27) odd++;
  }
  // The sniffed piece may end within a character, which makes one odd one.
  const strange = bytes.toString("utf8").split("\ufffd").length - 2;
  if (nuls > bytes.length * MOST_NULS) return `${nuls} of the first ${bytes.length} bytes are NUL`;
  const all = odd + Math.max(0, strange);
  return all > bytes.length * MOST_ODD ? `${all} of the first ${bytes.length} bytes belong to no text` : null;
}

async function changesOf(
  handle: FileHandle,
  path: string,
  opened: { readonly size: number; readonly ino: number },
  read: number,
): Promise<readonly string[]> {
  const [now, there] = await Promise.all([handle.stat(), stat(path).catch(() => null)]);
  const notes: string[] = [];
  if (read < opened.size || now.size < opened.size) {
    notes.push(`the file shrank from ${opened.size} bytes while it was read: only ${read} of them were there`);
  } else if (now.size > opened.size) {
    notes.push("lines were added while it was read; they are not among these");
  }
  if (there === null) notes.push("the file was removed or renamed while it was read: this is what it held before");
  else if (there.ino !== opened.ino) {
    notes.push(
      "another file took its place while it was read (rotation): this is what the old one held; read again for the new one",
    );
  }
  return notes;
}
