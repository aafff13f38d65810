// Stores contents of blobs in rows, in pieces. While content arrives, it has a temporary name. When it is complete and must be kept, it
// gets its hash as its name, before the engine commits a row for it. Content that is removed gets a temporary name again. Its pieces are
// deleted when no reader is left.

import { createHash, randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { LongshoreError } from "../../core/errors.ts";
import type { BlobContents, ReceivedContent } from "../../engine/blob/contents.ts";
import { Unavailable } from "../../engine/rows.ts";
import { decode } from "./binary.ts";
import type { Call } from "./link.ts";
import type { Parameter, RawRow } from "./package.ts";
import type { Statements } from "./statements.ts";

export interface PostgresBlobsDeps {
  readonly statements: Statements;
  /** Runs statements in a separate transaction. Rejects with `Unavailable` when PostgreSQL cannot be reached. */
  run(calls: readonly Call[]): Promise<RawRow[][]>;
  now(): number;
}

// Pieces are numbered from 0 in the column `part`. It keeps this name, because nodes of an earlier version may read the table while a newer
// one starts.

/** Maximum size of the piece in one row. */
const pieceBytes = 262_144;
/** Maximum number of hashes that one search for leftovers returns. */
const looksMax = 100;
/** The first character of a temporary name. */
const aside = "+";

/** Content that is being read. Its name changes when it is removed meanwhile. */
interface Reading {
  name: string;
}

export class PostgresBlobs implements BlobContents {
  readonly #deps: PostgresBlobsDeps;
  readonly #readings = new Map<string, Set<Reading>>();
  /** Names are changed one after the other, because content that is being removed may be stored again at once. */
  #renames: Promise<unknown> = Promise.resolve();
  #lookedUpTo = "";
  #closed = false;

  constructor(deps: PostgresBlobsDeps) {
    this.#deps = deps;
  }

  /** Removes contents with temporary names, which an earlier server has left behind. */
  async clean(): Promise<void> {
    // ',' is the next character after '+', so this is the range of all temporary names.
    await this.#run("DELETE FROM blob_chunk WHERE hash >= ? AND hash < ?", aside, ",");
  }

  async receive(content: AsyncIterable<Uint8Array> | Uint8Array, take: (bytes: number) => void): Promise<ReceivedContent> {
    if (this.#closed) throw new LongshoreError("LONGSHORE_CLOSED", "The store has been closed.");
    const name = aside + randomUUID();
    const digest = createHash("sha256");
    let bytes = 0;
    let number = 0;
    try {
      for await (const piece of pieces(content)) {
        take(piece.byteLength);
        bytes += piece.byteLength;
        digest.update(piece);
        await this.#write(name, number++, piece);
      }
      // Empty content gets an empty piece, which shows that it exists.
      if (number === 0) await this.#write(name, number, Buffer.alloc(0));
    } catch (error) {
      await this.#remove(name);
      throw error;
    }
    const hash = digest.digest("hex");
    return { hash, bytes, keep: () => this.#keep(name, hash), discard: () => this.#remove(name) };
  }

  async open(hash: string): Promise<Readable | null> {
    if (hash.startsWith(aside)) return null;
    await this.#renames;
    const [found] = await this.#run("SELECT count(*) FROM blob_chunk WHERE hash = ?", hash);
    const count = Number(found?.[0] ?? 0);
    if (count === 0) return null;
    const reading: Reading = { name: hash };
    this.#readings.set(hash, (this.#readings.get(hash) ?? new Set()).add(reading));
    const content = Readable.from(this.#read(reading, count), { objectMode: false });
    // A stream also closes when no caller has begun to read it.
    return content.once("close", () => this.#leave(reading));
  }

  takeAway(hash: string): () => Promise<void> {
    const name = aside + randomUUID();
    const readings = this.#readings.get(hash) ?? new Set();
    this.#readings.delete(hash);
    for (const reading of readings) reading.name = name;
    if (readings.size > 0) this.#readings.set(name, readings);
    const renamed = this.#rename("UPDATE blob_chunk SET hash = ? WHERE hash = ?", name, hash);
    return async () => {
      await renamed;
      // If it has readers, the last of them removes it.
      if (!this.#readings.has(name)) await this.#remove(name);
    };
  }

  async unchanged(before: number): Promise<string[]> {
    const found = await this.#run(
      "SELECT hash FROM blob_chunk WHERE hash > ? AND hash >= '0' AND part = 0 AND kept_at <= ? ORDER BY hash LIMIT ?",
      ...[this.#lookedUpTo, String(before), String(looksMax)],
    );
    const hashes = found.map(([hash]) => hash as string);
    this.#lookedUpTo = hashes.length < looksMax ? "" : (hashes.at(-1) as string);
    return hashes;
  }

  close(): void {
    this.#closed = true;
  }

  async *#read(reading: Reading, count: number): AsyncGenerator<Uint8Array> {
    for (let number = 0; number < count; number++) {
      yield await this.#piece(reading, number);
    }
  }

  async #piece(reading: Reading, number: number): Promise<Uint8Array> {
    await this.#renames;
    const { name } = reading;
    const [row] = await this.#run("SELECT bytes FROM blob_chunk WHERE hash = ? AND part = ?", name, String(number));
    if (row !== undefined) return decode("bytea", row[0] ?? null) as Uint8Array;
    // The blob may have been taken away while the query was sent: on another connection, its new name can come first.
    if (reading.name !== name) return this.#piece(reading, number);
    throw new Error(`Piece ${number} of the blob ${name} is not there.`);
  }

  async #leave(reading: Reading): Promise<void> {
    const { name } = reading;
    const readings = this.#readings.get(name);
    readings?.delete(reading);
    if (readings?.size !== 0) return;
    this.#readings.delete(name);
    if (name.startsWith(aside)) await this.#remove(name);
  }

  #write(name: string, number: number, piece: Uint8Array): Promise<unknown> {
    const values = [name, String(number), String(this.#deps.now()), Buffer.from(piece)];
    return this.#run("INSERT INTO blob_chunk (hash, part, kept_at, bytes) VALUES (?, ?::int, ?::bigint, ?)", ...values);
  }

  /** If the same content is stored already, only its time is updated. */
  async #keep(name: string, hash: string): Promise<void> {
    const { statements, run } = this.#deps;
    const call = (sql: string, ...values: Parameter[]) => ({ statement: statements.of(sql), values });
    await this.#inOrder(() =>
      run([
        call("UPDATE blob_chunk SET kept_at = ?::bigint WHERE hash = ? AND part = 0", String(this.#deps.now()), hash),
        call(
          "UPDATE blob_chunk SET hash = ? WHERE hash = ? AND NOT EXISTS (SELECT 1 FROM blob_chunk AS kept WHERE kept.hash = ?)",
          ...[hash, name, hash],
        ),
      ]),
    );
  }

  #rename(sql: string, ...values: Parameter[]): Promise<unknown> {
    return this.#inOrder(() => this.#run(sql, ...values));
  }

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#renames.then(work);
    // The caller gets the error.
    this.#renames = done.catch(() => {});
    return done;
  }

  /** Content that cannot be removed now is removed later: by the next server, or by the search for content without a row. */
  async #remove(name: string): Promise<void> {
    await this.#run("DELETE FROM blob_chunk WHERE hash = ?", name).catch(() => {});
  }

  async #run(sql: string, ...values: Parameter[]): Promise<RawRow[]> {
    const { statements, run } = this.#deps;
    try {
      const [rows = []] = await run([{ statement: statements.of(sql), values }]);
      return rows;
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      throw new LongshoreError(
        "LONGSHORE_STORE_UNAVAILABLE",
        `${error.what}: ${error.message}. ${error.advice}; service resumes by itself.`,
        {
          cause: error,
        },
      );
    }
  }
}

/** Content in pieces of one size, however it arrives. */
async function* pieces(content: AsyncIterable<Uint8Array> | Uint8Array): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array[] = [];
  let bytes = 0;
  const arriving = content instanceof Uint8Array ? [content] : content;
  for await (const some of arriving) {
    rest.push(some);
    bytes += some.byteLength;
    if (bytes < pieceBytes) continue;
    const all = Buffer.concat(rest);
    let at = 0;
    for (; all.byteLength - at >= pieceBytes; at += pieceBytes) yield all.subarray(at, at + pieceBytes);
    rest = [all.subarray(at)];
    bytes = all.byteLength - at;
  }
  if (bytes > 0) yield Buffer.concat(rest);
}
