// Encodes the values of one column as an array in PostgreSQL's binary format. So a statement has one parameter for each column, however many rows there
// are. For 100 rows this takes a sixth of the time of 100 statements.

import type { Value } from "../../engine/rows.ts";

/** The types of the columns into which rows are written. */
export type ColumnType = "text" | "int8" | "bytea";

const oids: { readonly [Type in ColumnType]: number } = { text: 25, int8: 20, bytea: 17 };

const headerBytes = 20;
const lengthBytes = 4;
const int8Bytes = 8;
const twoTo32 = 0x1_0000_0000;
/** The size of a new buffer: enough for a commit of about ten rows. */
const firstBytes = 16_384;
/** A larger buffer is not kept for the next commit. */
const keptBytesMax = 4_194_304;

/**
 * Encodes all arrays of one message into one buffer, one after the other. The buffer is used again for the next message. With a buffer for each array,
 * a statement would need thirty or more.
 */
export class ArrayEncoder {
  #bytes = Buffer.allocUnsafeSlow(firstBytes);
  #at = 0;

  /** Begins a message. The arrays of the previous message must not be used any more. */
  begin(): void {
    this.#at = 0;
    if (this.#bytes.length > keptBytesMax) this.#bytes = Buffer.allocUnsafeSlow(firstBytes);
  }

  /** The array of the values that `valueIn` returns for the records. */
  encode<R>(type: ColumnType, records: readonly R[], valueIn: (record: R) => Value): Buffer {
    const from = this.#at;
    let hasNull = 0;
    let at = from + headerBytes;
    let bytes = this.#withRoom(at, 0);
    for (const record of records) {
      const value = valueIn(record);
      const length = value === null ? 0 : lengthOf(value);
      if (bytes.length < at + lengthBytes + length) bytes = this.#withRoom(at, lengthBytes + length);
      if (value === null) hasNull = 1;
      at = bytes.writeInt32BE(value === null ? -1 : length, at);
      if (typeof value === "string") bytes.write(value, at);
      else if (typeof value === "number") writeInt64(bytes, at, value);
      else if (value !== null) bytes.set(value, at);
      at += length;
    }
    this.#at = at;
    // The header: one dimension, whether there are nulls, the type, the number of values, and the first index, which is 1.
    bytes.writeInt32BE(1, from);
    bytes.writeInt32BE(hasNull, from + 4);
    bytes.writeInt32BE(oids[type], from + 8);
    bytes.writeInt32BE(records.length, from + 12);
    bytes.writeInt32BE(1, from + 16);
    return bytes.subarray(from, at);
  }

  /** A buffer with the same bytes up to `at`, and room for more after them. Arrays that are already encoded stay in their place. */
  #withRoom(at: number, more: number): Buffer {
    const before = this.#bytes;
    if (before.length >= at + more) return before;
    this.#bytes = Buffer.allocUnsafeSlow(Math.max(2 * before.length, at + more));
    before.copy(this.#bytes, 0, 0, Math.min(at, before.length));
    return this.#bytes;
  }
}

function lengthOf(value: string | number | Uint8Array): number {
  if (typeof value === "number") return int8Bytes;
  return typeof value === "string" ? Buffer.byteLength(value) : value.byteLength;
}

/** Without BigInt, which takes five times as long. */
function writeInt64(into: Buffer, at: number, value: number): void {
  checkWhole(value);
  const high = Math.floor(value / twoTo32);
  into.writeInt32BE(high, at);
  into.writeUInt32BE(value - high * twoTo32, at + 4);
}

/** Throws for a number that would be read back as a different one. */
export function checkWhole(value: number): void {
  if (!Number.isSafeInteger(value)) throw new Error(`${value} cannot be stored: it is not a whole number below 2^53.`);
}

/** The value of a text that PostgreSQL has sent. */
export function decode(type: ColumnType, text: string | null): Value {
  if (text === null || type === "text") return text;
  return type === "int8" ? Number(text) : Buffer.from(text.slice(2), "hex");
}
