// A record that can never be handled must not hold up those behind it: any program that may publish to a topic decides what is in it. A record
// that cannot be handled now is different: nothing can be written, or the program that would accept it is away. It comes again.

import { codeOf, isClosing, isTransient, LongshoreError, toError } from "../core/errors.ts";
import type { BusRecord, Subscription } from "./bus.ts";

/** For an error without a code of ours, which may pass or not: some seconds, with the pause of the bus between two tries. */
const triesMax = 5;

/** Thrown by a reader that has no room for a record now. */
export class NoRoom extends Error {
  override readonly name: string = "NoRoom";
}

/** Whether it is worth to handle the same records again: nothing can be written or reached now, or this process is about to go. */
export function mayPass(error: unknown): boolean {
  return error instanceof NoRoom || isTransient(error) || isClosing(error) || codeOf(toError(error)) === "LONGSHORE_UNAUTHORIZED";
}

/** A refusal stays one. Of anything else, such as a mistake of ours or of a library, that is not known. */
function isFinal(error: unknown): boolean {
  return error instanceof LongshoreError && error.code !== "LONGSHORE_INTERNAL";
}

const none = { place: "", tries: 0 };

/** Handles one record after the other. `skipped` gets each that is passed over, with the reason. */
export function skipping(
  handle: (record: BusRecord) => Promise<void>,
  skipped: (record: BusRecord, error: Error) => void,
): Subscription["handle"] {
  let failing = none;
  return async (records) => {
    for (const record of records) {
      try {
        await handle(record);
      } catch (thrown) {
        if (mayPass(thrown)) throw thrown;
        const { place } = record;
        failing = { place, tries: failing.place === place ? failing.tries + 1 : 1 };
        if (!isFinal(thrown) && failing.tries < triesMax) throw thrown;
        failing = none;
        skipped(record, toError(thrown));
      }
    }
  };
}
