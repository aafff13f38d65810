// Waits on a clock. Without modules of Node, because browsers load this file too.

import type { Clock } from "./clock.ts";

/** Waits until `ms` have passed on `clock`, or until `signal` aborts; never rejects. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const cancel = clock.at(clock.now() + ms, done);
    signal?.addEventListener("abort", done, { once: true });
  });
}
