// Batches as parts of a task: under names that the store takes, and not more in one call than it does.

import { type NewPart, partBytesMax, putPartsMax, uidLengthMax } from "../../../engine/part/store.ts";
import { grouped } from "../wire/artifacts/groups.ts";

/** SQLite's texts end at the first NUL, and a longer one is refused: a batch with such a name is kept under what it can have. */
export function partUidOf(uid: string): string {
  const clean = uid.includes("\u0000") ? uid.replaceAll("\u0000", "\uFFFD") : uid;
  return clean.length > uidLengthMax ? clean.slice(0, uidLengthMax) : clean;
}

export function* partGroups(parts: readonly NewPart[]): Generator<readonly NewPart[]> {
  for (let at = 0; at < parts.length; at += putPartsMax) {
    yield* grouped(parts.slice(at, at + putPartsMax), ({ value }) => Buffer.byteLength(value), partBytesMax);
  }
}
