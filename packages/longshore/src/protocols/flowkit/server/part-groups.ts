// Stores batches as parts of a task: with names that the store accepts, and within the limits of one call.

import { type NewPart, partBytesMax, putPartsMax, uidLengthMax } from "../../../engine/part/store.ts";
import { grouped } from "../wire/artifacts/groups.ts";

/** SQLite texts end at the first NUL, and long names are refused: such a name is replaced or cut. */
export function partUidOf(uid: string): string {
  const clean = uid.includes("\u0000") ? uid.replaceAll("\u0000", "\uFFFD") : uid;
  return clean.length > uidLengthMax ? clean.slice(0, uidLengthMax) : clean;
}

export function* partGroups(parts: readonly NewPart[]): Generator<readonly NewPart[]> {
  for (let at = 0; at < parts.length; at += putPartsMax) {
    yield* grouped(parts.slice(at, at + putPartsMax), ({ value }) => Buffer.byteLength(value), partBytesMax);
  }
}
