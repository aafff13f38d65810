// Contents of blobs in files named by their hash. Content is written to a temporary file, synced and renamed before the engine commits a
// row for it. So a crash cannot lose the bytes of a blob that has a row. It may leave a file without a row; the engine removes such files,
// one folder at a time.

import { createHash, randomUUID } from "node:crypto";
import { constants, lstatSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { LongshoreError, toError } from "../../core/errors.ts";
import type { BlobContents, ReceivedContent } from "../../engine/blob/contents.ts";
import { blobPath } from "./blob-path.ts";

/** Bytes that are hashed and written in one turn of the event loop. */
const pieceBytes = 262_144;

export class BlobFiles implements BlobContents {
  readonly directory: string;
  readonly #isTemporary: boolean;
  #nextFolder = 0;
  #prepared = false;
  #closed = false;

  /** Null for a temporary folder, which the first blob creates and `close` removes. */
  constructor(directory: string | null) {
    this.#isTemporary = directory === null;
    this.directory = directory ?? join(tmpdir(), `longshore-blobs-${randomUUID()}`);
    if (directory !== null) this.#prepare();
  }

  async receive(content: AsyncIterable<Uint8Array> | Uint8Array, take: (bytes: number) => void): Promise<ReceivedContent> {
    const temporary = this.#incoming();
    try {
      if (!this.#prepared) this.#prepare();
      const { hash, bytes } = await write(temporary, content instanceof Uint8Array ? piecesOf(content) : content, take);
      return { hash, bytes, keep: () => this.#keep(temporary, hash), discard: () => this.#discard(temporary) };
    } catch (error) {
      await this.#discard(temporary);
      throw inWords(error);
    }
  }

  async open(hash: string): Promise<Readable | null> {
    const path = blobPath(this.directory, hash);
    if (path === null) return null;
    try {
      // A restored folder may have links to files elsewhere, or pipes, in the place of contents.
      const file = await open(path.file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
      if ((await file.stat()).isFile()) return file.createReadStream();
      await file.close();
      return null;
    } catch (error) {
      // Another program has removed the file, or put a link in its place, so for readers the blob does not exist.
      if (codeOf(error) === "ENOENT" || codeOf(error) === "ELOOP") return null;
      throw error;
    }
  }

  takeAway(hash: string): () => Promise<void> {
    const aside = this.#incoming();
    const path = blobPath(this.directory, hash);
    try {
      if (path !== null) renameSync(path.file, aside);
    } catch {
      // Only the removal of the row counts. If the file cannot be moved now, it is removed later, as a file without a row.
    }
    return () => rm(aside, { force: true });
  }

  async unchanged(before: number): Promise<string[]> {
    const folder = join(this.directory, (this.#nextFolder++ % 256).toString(16).padStart(2, "0"));
    const found: string[] = [];
    // A missing folder or file has nothing to remove.
    for (const name of await readdir(folder).catch(() => [])) {
      const changedAt = (await stat(join(folder, name)).catch(() => null))?.mtimeMs ?? Number.POSITIVE_INFINITY;
      if (changedAt <= before) found.push(name);
    }
    return found;
  }

  close(): void {
    this.#closed = true;
    if (this.#isTemporary) rmSync(this.directory, { recursive: true, force: true });
  }

  #prepare(): void {
    const incoming = join(this.directory, "incoming");
    mkdirSync(incoming, { recursive: true, mode: 0o700 });
    if (lstatSync(incoming).isSymbolicLink()) {
      const message = `The folder ${incoming} is a link, and what it leads to would be emptied. Remove the link.`;
      throw new LongshoreError("LONGSHORE_BAD_CONFIG", message);
    }
    // Uploads that the last process did not finish.
    for (const name of readdirSync(incoming)) rmSync(join(incoming, name), { force: true });
    this.#prepared = true;
  }

  async #keep(temporary: string, hash: string): Promise<void> {
    const path = blobPath(this.directory, hash);
    if (path === null) throw new Error(`${hash} is not the hash of a blob`);
    try {
      if ((await mkdir(path.folder, { recursive: true, mode: 0o700 })) !== undefined) await syncFolder(this.directory);
      await rename(temporary, path.file);
      await syncFolder(path.folder);
    } catch (error) {
      throw inWords(error);
    }
  }

  async #discard(temporary: string): Promise<void> {
    await rm(temporary, { force: true });
    // Content that arrived during `close` may have created the folder again.
    if (this.#closed) this.close();
  }

  #incoming(): string {
    return join(this.directory, "incoming", randomUUID());
  }
}

async function write(
  path: string,
  content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  take: (bytes: number) => void,
): Promise<{ hash: string; bytes: number }> {
  const digest = createHash("sha256");
  let bytes = 0;
  const file = await open(path, "wx", 0o600);
  try {
    for await (const piece of content) {
      take(piece.byteLength);
      bytes += piece.byteLength;
      digest.update(piece);
      await writeAll(file, piece);
    }
    await file.datasync();
  } finally {
    await file.close();
  }
  return { hash: digest.digest("hex"), bytes };
}

function* piecesOf(content: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < content.byteLength; at += pieceBytes) yield content.subarray(at, at + pieceBytes);
}

async function writeAll(file: FileHandle, piece: Uint8Array): Promise<void> {
  for (let at = 0; at < piece.byteLength; ) at += (await file.write(piece, at)).bytesWritten;
}

/** Makes the names in a folder durable: a renamed file is only safe once its folder is. */
async function syncFolder(path: string): Promise<void> {
  // Windows cannot open a folder; its file system makes names durable by itself.
  if (process.platform === "win32") return;
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown }).code);
}

/** An error of the disk is reported as transient; other errors stay unchanged. */
function inWords(error: unknown): unknown {
  if (!["ENOSPC", "EDQUOT", "EROFS", "EIO"].includes(codeOf(error))) return error;
  const message = `The blob cannot be written now: ${toError(error).message}. Make room on the disk.`;
  return new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", message, { cause: error });
}
