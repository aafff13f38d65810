// Time as a dependency. Nothing below the command line reads the system clock or starts a timer but through a Clock, so tests own time.

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `fn` once, not before `atMs`. The returned function cancels it and may be called at any time. */
  at(atMs: number, fn: () => void): () => void;
}

/** Longest delay that Node's timers take without firing at once. */
const timerMsMax = 2_147_483_647;

/** The machine's clock. Timers do not keep the process alive: whatever serves or works holds it open by itself. */
export const systemClock: Clock = {
  now: () => Date.now(),
  at(atMs, fn) {
    let timer: NodeJS.Timeout;
    const arm = () => {
      const wait = Math.max(0, atMs - Date.now());
      // Node rounds timers down to whole milliseconds, so a timer may fire just before its time: look again.
      timer = setTimeout(() => (Date.now() < atMs ? arm() : fn()), Math.min(wait, timerMsMax));
      timer.unref();
    };
    arm();
    return () => clearTimeout(timer);
  },
};

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
