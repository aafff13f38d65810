// What a reader of topics does in one turn of the event loop is bounded. Any program that may publish decides how much is in a topic and how
// large it is, and a reader that finds the next records at once would otherwise read all of them before any other caller is served.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { BusRecord, Subscription } from "./bus.ts";

/** Read in some milliseconds; 500 records of the usual size are below it. */
export const sliceBytes = 256 * 1024;

/** The same handler, called with one slice of the records in each turn. One that is larger by itself has a turn of its own. */
export function inSlices(handle: Subscription["handle"]): Subscription["handle"] {
  return async (records) => {
    for (let at = 0; at < records.length; ) {
      const end = sliceEnd(records, at);
      await handle(records.slice(at, end));
      at = end;
      await nextTurn();
    }
  };
}

function sliceEnd(records: readonly BusRecord[], start: number): number {
  let bytes = 0;
  for (let at = start; at < records.length; at++) {
    bytes += (records[at] as BusRecord).value.byteLength;
    if (bytes > sliceBytes && at > start) return at;
  }
  return records.length;
}
