// Values of one column as an array in PostgreSQL's binary format: one parameter, however many rows there are. For 100 rows that takes a sixth of
// the time that a statement for each takes.

import type { Value } from "../../engine/rows.ts";

/** The types of the columns that rows are written to. */
export type ColumnType = "text" | "int8" | "bytea";

const oids: { readonly [Type in ColumnType]: number } = { text: 25, int8: 20, bytea: 17 };

const headerBytes = 20;
const twoTo32 = 0x1_0000_0000;

export function encodeArray(type: ColumnType, values: readonly Value[]): Buffer {
  const lengths = values.map((value) => lengthOf(type, value));
  const into = Buffer.allocUnsafe(lengths.reduce((sum, length) => sum + 4 + Math.max(0, length), headerBytes));
  // One dimension, whether there are nulls, the type; then how many, counted from 1.
  into.writeInt32BE(1, 0);
  into.writeInt32BE(values.includes(null) ? 1 : 0, 4);
  into.writeInt32BE(oids[type], 8);
  into.writeInt32BE(values.length, 12);
  into.writeInt32BE(1, 16);
  let at = headerBytes;
  for (const [place, value] of values.entries()) {
    const length = lengths[place] as number;
    at = into.writeInt32BE(length, at);
    if (value !== null) write(into, at, value);
    at += Math.max(0, length);
  }
  return into;
}

function lengthOf(type: ColumnType, value: Value): number {
  if (value === null) return -1;
  if (type === "int8") return 8;
  return typeof value === "string" ? Buffer.byteLength(value) : (value as Uint8Array).byteLength;
}

function write(into: Buffer, at: number, value: string | number | Uint8Array): void {
  if (typeof value === "string") into.write(value, at);
  else if (typeof value === "number") writeInt64(into, at, value);
  else into.set(value, at);
}

/** Without BigInt, which takes five times as long. */
function writeInt64(into: Buffer, at: number, value: number): void {
  if (!Number.isSafeInteger(value)) throw new Error(`${value} cannot be stored: it is not a whole number below 2^53.`);
  const high = Math.floor(value / twoTo32);
  into.writeInt32BE(high, at);
  into.writeUInt32BE(value - high * twoTo32, at + 4);
}

/** A value as it arrives in text. */
export function decode(type: ColumnType, text: string | null): Value {
  if (text === null || type === "text") return text;
  return type === "int8" ? Number(text) : Buffer.from(text.slice(2), "hex");
}
