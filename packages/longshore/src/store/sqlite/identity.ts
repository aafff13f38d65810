// Whether the files that the server has open are still the ones in the data folder. A folder that was removed or replaced takes every
// write without an error, and loses it: so each commit looks after it was written and before it is answered.

import { type Stats, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { LongshoreError } from "../../errors.ts";

/** The folder is looked at each time; its files when its list of names has changed, and now and then in any case: clocks of files are coarse. */
const looksPerCheck = 64;

/** Returns null while the data file and its log are in their places. To be called right after both were opened. */
export function watchIdentity(file: string): () => LongshoreError | null {
  const folder = dirname(file);
  const paths = [file, `${file}-wal`];
  const opened = paths.map(look);
  let seen: Stats | undefined;
  let looks = 0;
  const check = (): LongshoreError | null => {
    const at = paths.findIndex((path, index) => !isSame(look(path), opened[index]));
    return at === -1 ? null : gone(paths[at] as string);
  };
  return () => {
    const now = look(folder);
    const settled = isSame(now, seen) && now?.mtimeMs === seen?.mtimeMs && ++looks < looksPerCheck;
    if (settled) return null;
    const found = check();
    // What was wrong is looked for again each time.
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

/** Callers without a token see it too, at /health: it does not disclose where the folder is. */
function gone(path: string): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_STORE_UNAVAILABLE",
    `The data file cannot be written: ${basename(path)} was removed or replaced while the server uses it. ` +
      "Put the original data folder back, or stop the server, restore the folder and start again.",
  );
}
