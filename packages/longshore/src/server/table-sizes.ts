// The sizes of the tables, measured at most once a minute, and again at once after an error.

import type { Clock } from "../core/clock.ts";
import type { StoredSize } from "../engine/store.ts";
import type { TableSizes } from "../protocols/server-half.ts";

/** With SQLite, measuring reads the whole data file. */
const keptMs = 60_000;

export function tableSizesBy(clock: Clock, read: (() => Promise<readonly StoredSize[]>) | undefined): () => Promise<TableSizes | null> {
  let measured: Promise<TableSizes> | undefined;
  let measuredAt = Number.NEGATIVE_INFINITY;
  return async () => {
    if (read === undefined) return null;
    const now = clock.now();
    if (measured === undefined || now - measuredAt >= keptMs) {
      measuredAt = now;
      measured = read().then((tables) => ({ measuredAt: now, tables }));
      // A measurement that failed is not kept; its caller gets the error.
      measured.catch(() => {
        measured = undefined;
      });
    }
    return measured;
  };
}
