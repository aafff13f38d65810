// Blobs: content by its hash (contents.ts), and a row for each complete content. The row is committed after the content is durable, and
// removed before the content. Old content without a row is left over from a crash or a failed commit; retention removes it.

import type { Readable } from "node:stream";
import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { type RowStore, readAll, type TableRows } from "../rows.ts";
import type { Place, Room, StoredBytes } from "../stored-bytes.ts";
import { type Blob, blobRows, blobTable, blobUseTable } from "../tables/blob.ts";
import type { ReadTx, Tx } from "../tx.ts";
import { type BlobStore, blobBytesMax, isBlobHash, type StoredBlob } from "./blob.ts";
import type { BlobContents, ReceivedContent } from "./contents.ts";

export interface LocalBlobsDeps {
  store: RowStore;
  commit: GroupCommit;
  clock: Clock;
  contents: BlobContents;
  bytesMax?: number;
  stored: StoredBytes;
}

/** A use of a blob that is not written yet. */
interface Use {
  readonly at: number;
  /** The use counts only for a blob that was last used before this time. */
  readonly usedBefore: number;
}

/** A use is written at most this often: retention counts in days. */
export const useMs = 3_600_000;
/** When so many uses wait to be written, uses by readers are dropped. Uses by open runs and tasks are never dropped. */
const usesMax = 10_000;
/** Counted for each blob in addition to content and note: even a short file takes a disk block and a directory entry. */
export const blobFileBytes = 4_096;
/** Maximum number of blobs that one transaction removes, or whose use it writes. */
const pruneMax = 100;
/** Content younger than this may belong to an upload whose row is not committed yet. */
const litterMs = 3_600_000;

export class LocalBlobs implements BlobStore {
  readonly #options: LocalBlobsDeps;
  readonly #bytesMax: number;
  readonly #space: Room;
  readonly #rows: Rows<Blob>;
  readonly #stored: TableRows<Blob>;
  readonly #uses: TableRows<Pick<Blob, "usedAt">>;
  /** Content that is in place but has no row yet: it must not be pruned before its row is committed. */
  readonly #arriving = new Map<string, number>();
  readonly #waiting = new Map<string, Use>();

  constructor(options: LocalBlobsDeps) {
    const { store, commit, stored, bytesMax = blobBytesMax } = options;
    this.#options = options;
    this.#bytesMax = bytesMax;
    this.#space = stored.of("blobs");
    this.#rows = blobRows(store, commit);
    this.#stored = store.table(blobTable);
    this.#uses = store.table(blobUseTable);
  }

  async put(content: AsyncIterable<Uint8Array> | Uint8Array, { hash, note }: { hash?: string; note?: string } = {}): Promise<StoredBlob> {
    if (hash !== undefined && !isBlobHash(hash)) throw badHash(hash);
    const place = this.#space.open();
    try {
      place.take(countOf(0, note ?? null));
      const received = await this.#options.contents.receive(content, this.#taking(place));
      try {
        place.arrived();
        if (hash !== undefined && hash !== received.hash) throw mismatch(hash, received.hash);
        return await this.#keep(received, note, place);
      } finally {
        await received.discard();
      }
    } finally {
      place.close();
    }
  }

  async get(hash: string): Promise<(StoredBlob & { content: Readable }) | undefined> {
    const blob = await this.stat(hash);
    if (blob === undefined) return undefined;
    const content = await this.#options.contents.open(hash);
    return content === null ? undefined : { ...blob, content };
  }

  async stat(hash: string): Promise<StoredBlob | undefined> {
    const blob = isBlobHash(hash) ? await this.#options.commit.read((tx) => this.#rows.get(tx, hash)) : null;
    if (blob === null) return undefined;
    const now = this.#options.clock.now();
    if (now - blob.usedAt >= useMs && this.#waiting.size < usesMax) this.#waiting.set(hash, { at: now, usedBefore: now });
    return storedOf(blob);
  }

  /**
   * Returns a time: the blobs that were last used before it are those that exceed the `count` newest. Returns 0 when there are at most
   * `count` blobs, or no limit.
   */
  async beyond(count: number): Promise<number> {
    if (!Number.isSafeInteger(count)) return 0;
    const ranked = (tx: ReadTx) => [...this.#uses.scan(tx, { by: ["used_at"], backwards: true, offset: count, limit: 1 })];
    const [found] = await this.#options.commit.read(ranked);
    return found === undefined ? 0 : found.usedAt + 1;
  }

  /** Whether there is a blob that was last used before `usedBefore`. */
  async anyUnused(usedBefore: number): Promise<boolean> {
    await this.noteUses();
    const oldest = (tx: ReadTx) => [...this.#uses.scan(tx, { by: ["used_at"], below: [usedBefore], limit: 1 })];
    return (await this.#options.commit.read(oldest)).length > 0;
  }

  /**
   * Records that an open run or task refers to a blob. It counts as a use if the blob was last used before `usedBefore`. The blob may not
   * exist.
   */
  refer(hash: string, usedBefore: number): void {
    this.#waiting.set(hash, { at: this.#options.clock.now(), usedBefore });
  }

  /**
   * Removes up to a hundred blobs that were last used before `usedBefore`; returns how many. `needed` is called inside the operation, and
   * returns hashes that must stay.
   */
  async prune(usedBefore: number, needed: (tx: Tx) => ReadonlySet<string> = () => new Set()): Promise<number> {
    if (!(await this.anyUnused(usedBefore))) return 0;
    const frees: (() => Promise<void>)[] = [];
    const removed = await this.#options.commit.run((tx) => {
      const spared = needed(tx);
      const isFree = (hash: string) => !this.#arriving.has(hash) && !this.#waiting.has(hash) && !spared.has(hash);
      const oldest = [...this.#stored.scan(tx, { by: ["used_at"], below: [usedBefore], limit: pruneMax })];
      const stale = oldest.filter(({ hash }) => isFree(hash));
      for (const { hash } of stale) this.#rows.remove(tx, hash);
      this.#space.add(tx, -stale.reduce((sum, { bytes, note }) => sum + countOf(bytes, note), 0));
      tx.after(() => {
        for (const { hash } of stale) frees.push(this.#takeAway(hash));
      });
      return stale.length;
    });
    for (const free of frees) await free();
    return removed;
  }

  /** Removes some old contents without a row, different ones with each call; returns how many. */
  async sweep(): Promise<number> {
    const { contents, clock, commit } = this.#options;
    let removed = 0;
    for (const hash of await contents.unchanged(clock.now() - litterMs)) {
      const frees: (() => Promise<void>)[] = [];
      await commit.run((tx) => {
        if (this.#rows.get(tx, hash) === null && !this.#arriving.has(hash)) tx.after(() => frees.push(this.#takeAway(hash)));
      });
      for (const free of frees) await free();
      removed += frees.length;
    }
    return removed;
  }

  /** Must be called right after the commit. If the same content arrived again before the commit, the content stays. */
  #takeAway(hash: string): () => Promise<void> {
    return this.#arriving.has(hash) ? () => Promise.resolve() : this.#options.contents.takeAway(hash);
  }

  /** Writes the pending uses. */
  async noteUses(): Promise<void> {
    while (this.#waiting.size > 0) {
      await this.#options.commit.run((tx) => {
        const uses = [...this.#waiting].slice(0, pruneMax);
        const blobs = readAll(uses, ([hash]) => this.#rows.get(tx, hash));
        for (const [at, [hash, use]] of uses.entries()) {
          const blob = blobs[at] ?? null;
          if (blob !== null && blob.usedAt < use.usedBefore) this.#rows.put(tx, hash, { ...blob, usedAt: use.at });
          tx.after(() => this.#waiting.delete(hash));
        }
      });
    }
  }

  #taking(place: Place): (bytes: number) => void {
    let received = 0;
    return (bytes) => {
      received += bytes;
      if (received > this.#bytesMax) throw tooLarge(this.#bytesMax);
      place.take(bytes);
    };
  }

  async #keep(received: ReceivedContent, note: string | undefined, place: Place): Promise<StoredBlob> {
    const { hash, bytes } = received;
    this.#arriving.set(hash, (this.#arriving.get(hash) ?? 0) + 1);
    try {
      await received.keep();
      return await this.#options.commit.run((tx) => {
        const now = this.#options.clock.now();
        const known = this.#rows.get(tx, hash);
        const blob = { hash, bytes, createdAt: known?.createdAt ?? now, usedAt: now, note: note ?? known?.note ?? null };
        this.#rows.put(tx, hash, blob, known === null);
        if (known === null) place.keep(tx);
        // While the blob arrived, it reserved room for all its bytes, so there is room for a new note.
        else this.#space.add(tx, countOf(bytes, blob.note) - countOf(bytes, known.note));
        return storedOf(blob);
      });
    } finally {
      const others = (this.#arriving.get(hash) ?? 1) - 1;
      if (others > 0) this.#arriving.set(hash, others);
      else this.#arriving.delete(hash);
    }
  }
}

/** The bytes of a blob that count against the quota; the schema computes the same. */
function countOf(bytes: number, note: string | null): number {
  return blobFileBytes + bytes + (note === null ? 0 : Buffer.byteLength(note));
}

export function storedOf({ hash, bytes, note }: Blob): StoredBlob {
  return { hash, bytes, note };
}

function tooLarge(bytesMax: number): LongshoreError {
  const expected = `at most ${bytesMax} bytes`;
  return new LongshoreError("LONGSHORE_LIMIT", `The blob is larger than ${bytesMax} bytes.`, { detail: { expected } });
}

function badHash(hash: string): LongshoreError {
  const expected = "64 hexadecimal digits in lower case (SHA-256)";
  return new LongshoreError("LONGSHORE_BAD_INPUT", `"${hash.slice(0, 100)}" is not a blob hash; expected ${expected}.`, {
    detail: { field: "hash", expected },
  });
}

function mismatch(expected: string, actual: string): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_BAD_INPUT",
    `The content has the hash ${actual}, not ${expected} as announced: either it was damaged on its way, or the announced hash is wrong.`,
    {
      detail: { field: "hash", expected },
    },
  );
}
