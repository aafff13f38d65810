// Whether the files that the server has open are still the ones in the data folder. A folder that was removed or replaced takes every
// write without an error, and loses it: so commits look after they are written and before they are answered. A commit soon after the last
// look is answered first: a look takes as long as a tenth of a small commit, and its caller would wait for it.

import { type Stats, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { LongshoreError } from "../../core/errors.ts";

/**
 * A commit that follows the last look within this time does not look again: a look costs as much as a tenth of a small commit. What is
 * acknowledged meanwhile is lost with the folder, exactly as everything that was acknowledged just before.
 */
export const restMs = 5;
/** A commit that follows the last look within this time is answered first, and the look comes in the next turn of the event loop. */
export const answersFirstMs = 100;
/** The folder is looked at each time; its files when its list of names has changed, and now and then in any case: clocks of files are coarse. */
export const looksPerCheck = 64;

/**
 * Returns null while the data file and its log are in their places. To be called right after both were opened. `steady` is in milliseconds,
 * and `later` calls back in the next turn.
 */
export function watchIdentity(
  file: string,
  steady: () => number = () => performance.now(),
  later: (then: () => void) => void = setImmediate,
): () => LongshoreError | null {
  const folder = dirname(file);
  const paths = [file, `${file}-wal`];
  const opened = paths.map(look);
  let seen: Stats | undefined;
  let looks = 0;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let isDue = false;
  let known: LongshoreError | null = null;
  const check = (): LongshoreError | null => {
    const at = paths.findIndex((path, index) => !isSame(look(path), opened[index]));
    return at === -1 ? null : gone(paths[at] as string);
  };
  const lookNow = (at: number): LongshoreError | null => {
    const now = look(folder);
    const settled = isSame(now, seen) && now?.mtimeMs === seen?.mtimeMs && ++looks < looksPerCheck;
    lookedAt = at;
    if (settled) return null;
    known = check();
    seen = known === null ? now : undefined;
    looks = 0;
    return known;
  };
  const lookLater = (): void => {
    isDue = false;
    lookNow(steady());
  };
  return () => {
    const at = steady();
    // What was wrong is looked for again each time.
    if (known !== null || at >= lookedAt + answersFirstMs) return lookNow(at);
    if (at >= lookedAt + restMs && !isDue) {
      isDue = true;
      later(lookLater);
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

/** Callers without a token can read it too, at /health: it does not disclose where the folder is. */
function gone(path: string): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_STORE_UNAVAILABLE",
    `The data file cannot be written: ${basename(path)} was removed or replaced while the server uses it. ` +
      "Put the original data folder back, or stop the server, restore the folder and start again.",
  );
}
