// Whether the files that the server has open are still the ones in the data folder. A folder that was removed or replaced takes every
// write without an error, and loses it: so each commit looks after it was written and before it is answered.

import { type Stats, statSync } from "node:fs";
import { basename } from "node:path";
import { LongshoreError } from "../../errors.ts";

/** Returns null while the data file and its log are in their places. To be called right after both were opened. */
export function watchIdentity(file: string): () => LongshoreError | null {
  const paths = [file, `${file}-wal`];
  const opened = paths.map(look);
  return () => {
    for (let at = 0; at < paths.length; at++) {
      const path = paths[at] as string;
      if (!isSame(look(path), opened[at])) return gone(path);
    }
    return null;
  };
}

function look(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // A folder above it cannot be looked into any more: not the place where the file was opened.
    return undefined;
  }
}

function isSame(now: Stats | undefined, then: Stats | undefined): boolean {
  return now !== undefined && then !== undefined && now.ino === then.ino && now.dev === then.dev;
}

/** Callers without a token see it too, at /health: it does not disclose where the folder is. */
function gone(path: string): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_STORE_UNAVAILABLE",
    `The data file cannot be written: ${basename(path)} was removed or replaced while the server uses it. ` +
      "Put the original data folder back, or stop the server, restore the folder and start again.",
  );
}
