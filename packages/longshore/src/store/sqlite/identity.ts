// Checks whether the files that the server has open are still those in the data folder. A folder that was removed or replaced accepts every
// write without an error, and loses it. So each commit is checked after it is written and before its callers get their results.

import { type Stats, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { LongshoreError } from "../../core/errors.ts";

/**
 * A commit within this time after the last check is not checked again: a check costs as much as a tenth of a small commit. Commits that are
 * acknowledged in this time are lost with the folder, like all commits from before.
 */
export const restMs = 5;
/**
 * The folder is checked each time. Its files are checked when the folder's modification time has changed and, because file times are
 * coarse, also every 64th time.
 */
export const looksPerCheck = 64;

/**
 * Returns a function that returns null while the data file and its log are in their places. Must be called right after both were opened.
 * `steady` is in milliseconds.
 */
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
    // After an error, the next call checks again.
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
    // A parent folder is not readable any more, so the path does not lead to the opened file.
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
