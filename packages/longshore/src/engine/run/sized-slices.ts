// Groups rows by their size before they are read: one turn of the event loop reads a bounded number of bytes.

import { rowBytes, wholeRow } from "../../core/slices/slices.ts";

/** The number of bytes of a row's texts. The database knows it without reading the texts. */
export interface Sized {
  readonly id: string;
  readonly bytes: number;
}

/** Rows that are read together. `cost` is the argument for `Slices.turn`. */
export interface SizedSlice {
  readonly ids: readonly string[];
  readonly bytes: number;
  readonly cost: number;
}

/** Groups in the order of the rows. A row that is larger than `bytesMax` is alone. */
export function* slicesOf(rows: readonly Sized[], { rowsMax, bytesMax }: { rowsMax: number; bytesMax: number }): Iterable<SizedSlice> {
  let ids: string[] = [];
  let bytes = 0;
  for (const { id, bytes: more } of rows) {
    if (ids.length === rowsMax || (ids.length > 0 && bytes + more > bytesMax)) {
      yield { ids, bytes, cost: costOf(ids.length, bytes) };
      ids = [];
      bytes = 0;
    }
    ids.push(id);
    bytes += more;
  }
  if (ids.length > 0) yield { ids, bytes, cost: costOf(ids.length, bytes) };
}

function costOf(rows: number, bytes: number): number {
  return rows * wholeRow + Math.floor(bytes / rowBytes);
}
