// Whether the files that the server has open are still the ones in the data folder. A folder that was removed or replaced takes every
// write without an error, and loses it: so commits look after they are written and before they are answered.

import { type Stats, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { LongshoreError } from "../../core/errors.ts";

/**
 * A commit that follows the last look within this time does not look again: a look costs as much as a tenth of a small commit. What is
 * acknowledged meanwhile is lost with the folder, exactly as everything that was acknowledged just before.
 */
export const restMs = 5;
/** The folder is looked at each time; its files when its list of names has changed, and now and then in any case: clocks of files are coarse. */
export const looksPerCheck = 64;

/** Returns null while the data file and its log are in their places. To be called right after both were opened. `steady` is in milliseconds. */
export function watchIdentity(file: string, steady: () => number = () => performance.now()): () => LongshoreError | null {
  const folder = dirname(file);
  const paths = [file, `${file}-wal`];
  const opened = paths.map(look);
  let seen: Stats | undefined;
  let looks = 0;
  let restUntil = 0;
  const check = (): LongshoreError | null => {
    const at = paths.findIndex((path, index) => !isSame(look(path), opened[index]));
    return at === -1 ? null : gone(paths[at] as string);
  };
  return () => {
    const at = steady();
    if (at < restUntil) return null;
    const now = look(folder);
    const settled = isSame(now, seen) && now?.mtimeMs === seen?.mtimeMs && ++looks < looksPerCheck;
    const found = settled ? null : check();
    // What was wrong is looked for again each time.
    restUntil = found === null ? at + restMs : 0;
    if (settled) return null;
    seen = found === null ? now : undefined;
    looks = 0;
    return found;
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

/** Callers without a token can read it too, at /health: it does not disclose where the folder is. */
function gone(path: string): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_STORE_UNAVAILABLE",
    `The data file cannot be written: ${basename(path)} was removed or replaced while the server uses it. ` +
      "Put the original data folder back, or stop the server, restore the folder and start again.",
  );
}
