// Any program with access to a topic may publish anything. So a record that can never be handled is skipped; otherwise it would block the
// records after it. A record that cannot be handled now is read again: for example, the store cannot write, or another server is not
// reachable.

import type { BusRecord, Subscription } from "../core/bus/bus.ts";
import { codeOf, isClosing, isTransient, LongshoreError, toError } from "../core/errors.ts";

/**
 * The limit of tries for an unexpected error, which may be temporary or not. The tries take some seconds, because the bus pauses between
 * them.
 */
const triesMax = 5;

/** Thrown by a reader that has no room for a record now. */
export class NoRoom extends Error {
  override readonly name: string = "NoRoom";
}

/** Whether a later try may succeed: for lack of room, an unavailable store or server, a refused token, or because the process stops. */
export function mayPass(error: unknown): boolean {
  return error instanceof NoRoom || isTransient(error) || isClosing(error) || codeOf(toError(error)) === "LONGSHORE_UNAUTHORIZED";
}

/** A refused record will be refused again. Other errors, such as a bug in our code or in a library, may not happen again. */
function isFinal(error: unknown): boolean {
  return error instanceof LongshoreError && error.code !== "LONGSHORE_INTERNAL";
}

const none = { place: "", tries: 0 };

/** Handles one record after the other. Calls `skipped` for each record that is skipped, with the reason. */
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
