// Bounds what a reader of topics handles in one turn of the event loop. Publishers decide how many records a topic has and how large they
// are. Without this limit, a reader that always finds more records would read all of them before any other caller is served.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { BusRecord, Subscription } from "../core/bus/bus.ts";

/** Handling this many bytes takes a few milliseconds. 500 records of the usual size have fewer bytes. */
export const sliceBytes = 256 * 1024;

/** The same handler, called with one slice of the records in each turn. A record that is larger than a slice has a turn of its own. */
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
