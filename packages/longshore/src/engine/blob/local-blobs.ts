// Blobs: content in files named by its hash, and a row for each complete file. Content is written to a temporary file, synced
// and renamed before the row is committed, so a row never refers to bytes that a crash could lose. A file without a row is garbage:
// an upload or a removal that a crash interrupted. Retention removes it, a folder at a time.

import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { Clock } from "../../clock.ts";
import { type BlobStore, blobBytesMax, isBlobHash, type StoredBlob } from "./blob.ts";
import { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { Place, Room, StoredBytes } from "../stored-bytes.ts";
import { committed, type Tx } from "../tx.ts";
import { LongshoreError, toError } from "../../errors.ts";
import type { Database, SqlRow } from "../../store/sqlite/driver.ts";

export interface LocalBlobsDeps {
  db: Database;
  commit: GroupCommit;
  clock: Clock;
  /** The folder of the files; null for a temporary folder that the first blob makes and `close` removes. */
  directory: string | null;
  bytesMax?: number;
  stored: StoredBytes;
}

interface Blob extends StoredBlob {
  readonly createdAt: number;
  readonly usedAt: number;
}

/** Content that has arrived whole. */
type Received = Omit<StoredBlob, "note">;

const columns = "hash, bytes, created_at, used_at, note";

/** A use is noted at most this often: retention counts in days. */
const useMs = 3_600_000;
/** Uses that wait to be noted. A use that finds no room is forgotten: the blob then counts as unused a while longer than it is. */
const usesMax = 10_000;
/** Counted for each blob besides its content and its note: a file takes a block of the disk and an entry, however short it is. */
export const blobFileBytes = 4_096;
/** Blobs that one transaction of pruning removes. */
const pruneMax = 100;
/** Files younger than this may belong to an upload whose row is on its way. */
const litterMs = 3_600_000;

export class LocalBlobs implements BlobStore {
  readonly #options: LocalBlobsDeps;
  /** The folder of the files. */
  readonly directory: string;
  readonly #bytesMax: number;
  readonly #space: Room;
  readonly #rows: Rows<Blob>;
  readonly #oldest: (usedBefore: number, limit: number) => Blob[];
  readonly #usedAtRank: (rank: number) => number | undefined;
  /** Content that is in place but has no row yet: it must not be pruned under the hands of its writer. */
  readonly #arriving = new Map<string, number>();
  readonly #uses = new Map<string, number>();
  #nextFolder = 0;
  #prepared = false;
  #closed = false;

  constructor(options: LocalBlobsDeps) {
    this.#options = options;
    this.#bytesMax = options.bytesMax ?? blobBytesMax;
    this.directory = options.directory ?? join(tmpdir(), `longshore-blobs-${randomUUID()}`);
    if (options.directory !== null) this.#prepare();
    this.#space = options.stored.of("blobs");
    this.#rows = blobRows(options.db, options.commit);
    const oldest = options.db.prepare(`SELECT ${columns} FROM blob WHERE used_at < ? ORDER BY used_at LIMIT ?`);
    this.#oldest = (usedBefore, limit) => oldest.all(usedBefore, limit).map(blobOf);
    const ranked = options.db.prepare("SELECT used_at FROM blob ORDER BY used_at DESC LIMIT 1 OFFSET ?");
    this.#usedAtRank = (rank) => ranked.get(rank)?.used_at as number | undefined;
  }

  async put(content: AsyncIterable<Uint8Array> | Uint8Array, { hash, note }: { hash?: string; note?: string } = {}): Promise<StoredBlob> {
    if (hash !== undefined && !isBlobHash(hash)) throw badHash(hash);
    const temporary = this.#incoming();
    const place = this.#space.open();
    try {
      place.take(countOf(0, note ?? null));
      if (!this.#prepared) this.#prepare();
      const blob = await this.#receive(temporary, content instanceof Uint8Array ? piecesOf(content) : content, place);
      if (hash !== undefined && hash !== blob.hash) throw mismatch(hash, blob.hash);
      return await this.#keep(temporary, blob, note, place);
    } catch (error) {
      throw isDiskTrouble(error) ? unavailable(error) : error;
    } finally {
      place.close();
      await rm(temporary, { force: true });
      // What came while the store closed may have made its folder again.
      if (this.#closed) this.close();
    }
  }

  async get(hash: string): Promise<(StoredBlob & { content: Readable }) | undefined> {
    const blob = this.#use(hash);
    if (blob === null) return undefined;
    try {
      const file = await open(this.#path(hash));
      return { ...storedOf(blob), content: file.createReadStream() };
    } catch (error) {
      // The file was removed from outside; for readers that is the same as no blob.
      if ((error as { code?: unknown }).code === "ENOENT") return undefined;
      throw error;
    }
  }

  stat(hash: string): Promise<StoredBlob | undefined> {
    const blob = this.#use(hash);
    return Promise.resolve(blob === null ? undefined : storedOf(blob));
  }

  /** The time before which every blob was last used that is not among the `count` newest; 0 when there are no more than those, or no limit. */
  beyond(count: number): number {
    const usedAt = Number.isSafeInteger(count) ? this.#usedAtRank(count) : undefined;
    return usedAt === undefined ? 0 : usedAt + 1;
  }

  /** Whether there is a blob that was not used since `usedBefore`. */
  async anyUnused(usedBefore: number): Promise<boolean> {
    await this.noteUses();
    return this.#oldest(usedBefore, 1).length > 0;
  }

  /** Something open refers to it: a use, unless it was used at `usedBefore` or later anyhow. */
  refer(hash: string, usedBefore: number): void {
    const blob = this.#rows.get(committed, hash);
    if (blob !== null && blob.usedAt < usedBefore) this.#uses.set(hash, this.#options.clock.now());
  }

  /**
   * Removes up to a hundred blobs that were not used since `usedBefore`; returns how many. `needed` is called inside the operation
   * for hashes that must stay nevertheless.
   */
  async prune(usedBefore: number, needed: (tx: Tx) => ReadonlySet<string> = () => new Set()): Promise<number> {
    if (!(await this.anyUnused(usedBefore))) return 0;
    const removed = await this.#options.commit.run((tx) => {
      const spared = needed(tx);
      const isFree = (hash: string) => !this.#arriving.has(hash) && !this.#uses.has(hash) && !spared.has(hash);
      const stale = this.#oldest(usedBefore, pruneMax).filter(({ hash }) => isFree(hash));
      const aside = stale.map(({ hash }) => [this.#path(hash), this.#incoming()] as const);
      for (const { hash } of stale) this.#rows.remove(tx, hash);
      this.#space.add(tx, -stale.reduce((sum, { bytes, note }) => sum + countOf(bytes, note), 0));
      // Right after the commit and before anything else can run: the same content may be put again at once.
      tx.after(() => {
        for (const [from, to] of aside) renameIfThere(from, to);
      });
      return aside.map(([, to]) => to);
    });
    for (const path of removed) await rm(path, { force: true });
    return removed.length;
  }

  /** Removes old files without a row from one of the 256 folders, the next one at each call. */
  async sweep(): Promise<number> {
    const folder = join(this.directory, (this.#nextFolder++ % 256).toString(16).padStart(2, "0"));
    let removed = 0;
    // A folder or file that is not there needs no sweeping.
    for (const name of await readdir(folder).catch(() => [])) {
      const path = join(folder, name);
      const changedAt = (await stat(path).catch(() => null))?.mtimeMs ?? Number.POSITIVE_INFINITY;
      if (this.#options.clock.now() - changedAt < litterMs || this.#arriving.has(name) || this.#rows.get(committed, name) !== null)
        continue;
      rmSync(path, { force: true });
      removed++;
    }
    return removed;
  }

  close(): void {
    this.#closed = true;
    if (this.#options.directory === null) rmSync(this.directory, { recursive: true, force: true });
  }

  #prepare(): void {
    const incoming = join(this.directory, "incoming");
    mkdirSync(incoming, { recursive: true, mode: 0o700 });
    // Uploads that the last process did not finish.
    for (const name of readdirSync(incoming)) rmSync(join(incoming, name), { force: true });
    this.#prepared = true;
  }

  async #receive(path: string, content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, place: Place): Promise<Received> {
    const digest = createHash("sha256");
    let bytes = 0;
    const file = await open(path, "wx", 0o600);
    try {
      for await (const piece of content) {
        bytes += piece.byteLength;
        if (bytes > this.#bytesMax) throw tooLarge(this.#bytesMax);
        place.take(piece.byteLength);
        digest.update(piece);
        await writeAll(file, piece);
      }
      await file.datasync();
    } finally {
      await file.close();
    }
    return { hash: digest.digest("hex"), bytes };
  }

  async #keep(temporary: string, { hash, bytes }: Received, note: string | undefined, place: Place): Promise<StoredBlob> {
    const folder = join(this.directory, hash.slice(0, 2));
    if ((await mkdir(folder, { recursive: true, mode: 0o700 })) !== undefined) await syncFolder(this.directory);
    this.#arriving.set(hash, (this.#arriving.get(hash) ?? 0) + 1);
    try {
      await rename(temporary, this.#path(hash));
      await syncFolder(folder);
      return await this.#options.commit.run((tx) => {
        const now = this.#options.clock.now();
        const known = this.#rows.get(tx, hash);
        const blob = { hash, bytes, createdAt: known?.createdAt ?? now, usedAt: now, note: note ?? known?.note ?? null };
        this.#rows.put(tx, hash, blob, known === null);
        if (known === null) place.keep(tx);
        // Room for the whole was taken while it arrived, so there is room for another note.
        else this.#space.add(tx, countOf(bytes, blob.note) - countOf(bytes, known.note));
        return storedOf(blob);
      });
    } finally {
      const others = (this.#arriving.get(hash) ?? 1) - 1;
      if (others > 0) this.#arriving.set(hash, others);
      else this.#arriving.delete(hash);
    }
  }

  #use(hash: string): Blob | null {
    const blob = isBlobHash(hash) ? this.#rows.get(committed, hash) : null;
    const now = this.#options.clock.now();
    if (blob !== null && now - blob.usedAt >= useMs && this.#uses.size < usesMax) this.#uses.set(hash, now);
    return blob;
  }

  /** Writes down the uses that wait for it. */
  async noteUses(): Promise<void> {
    while (this.#uses.size > 0) {
      await this.#options.commit.run((tx) => {
        for (const [hash, usedAt] of [...this.#uses].slice(0, pruneMax)) {
          const blob = this.#rows.get(tx, hash);
          if (blob !== null) this.#rows.put(tx, hash, { ...blob, usedAt });
          tx.after(() => this.#uses.delete(hash));
        }
      });
    }
  }

  #incoming(): string {
    return join(this.directory, "incoming", randomUUID());
  }

  #path(hash: string): string {
    return join(this.directory, hash.slice(0, 2), hash);
  }
}

function blobRows(db: Database, commit: GroupCommit): Rows<Blob> {
  const select = db.prepare(`SELECT ${columns} FROM blob WHERE hash = ?`);
  const insert = db.prepare(`INSERT INTO blob (${columns}) VALUES (?, ?, ?, ?, ?)`);
  const update = db.prepare("UPDATE blob SET used_at = ?, note = ? WHERE hash = ?");
  const remove = db.prepare("DELETE FROM blob WHERE hash = ?");
  return new Rows<Blob>(commit, {
    load(hash) {
      const row = select.get(hash);
      return row === undefined ? null : blobOf(row);
    },
    save(blob, isNew) {
      if (isNew) insert.run(blob.hash, blob.bytes, blob.createdAt, blob.usedAt, blob.note);
      else update.run(blob.usedAt, blob.note, blob.hash);
    },
    remove: (hash) => remove.run(hash),
    keep: () => "no",
    keptMax: 0,
  });
}

/** What a blob takes of the quota; the schema counts the same. */
function countOf(bytes: number, note: string | null): number {
  return blobFileBytes + bytes + (note === null ? 0 : Buffer.byteLength(note));
}

function blobOf(row: SqlRow): Blob {
  return {
    hash: row.hash as string,
    bytes: row.bytes as number,
    createdAt: row.created_at as number,
    usedAt: row.used_at as number,
    note: row.note as string | null,
  };
}

/** What is hashed and written in one turn of the event loop. */
const pieceBytes = 262_144;

function* piecesOf(content: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < content.byteLength; at += pieceBytes) yield content.subarray(at, at + pieceBytes);
}

function storedOf({ hash, bytes, note }: Blob): StoredBlob {
  return { hash, bytes, note };
}

async function writeAll(file: FileHandle, piece: Uint8Array): Promise<void> {
  for (let at = 0; at < piece.byteLength; ) at += (await file.write(piece, at)).bytesWritten;
}

/** Makes the names in a folder durable: a renamed file is only safe once its folder is. */
async function syncFolder(path: string): Promise<void> {
  // Windows cannot open a folder; its file system writes names down by itself.
  if (process.platform === "win32") return;
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch {
    // The row is gone, which is what counts; a file that cannot be moved is litter for the sweep.
  }
}

function isDiskTrouble(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT", "EROFS", "EIO"].includes(String((error as { code?: unknown }).code));
}

function unavailable(cause: unknown): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_STORE_UNAVAILABLE",
    `The blob cannot be written now: ${toError(cause).message}. Make room on the disk.`,
    { cause },
  );
}

function tooLarge(bytesMax: number): LongshoreError {
  const expected = `at most ${bytesMax} bytes`;
  return new LongshoreError("LONGSHORE_LIMIT", `The blob is larger than ${bytesMax} bytes.`, { detail: { expected } });
}

function badHash(hash: string): LongshoreError {
  const expected = "64 hexadecimal digits in lower case (SHA-256)";
  return new LongshoreError("LONGSHORE_BAD_INPUT", `"${hash.slice(0, 100)}" is no blob hash; expected ${expected}.`, {
    detail: { field: "hash", expected },
  });
}

function mismatch(expected: string, actual: string): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_BAD_INPUT",
    `The content has the hash ${actual}, not ${expected} as announced: it was damaged on its way.`,
    {
      detail: { field: "hash", expected },
    },
  );
}
