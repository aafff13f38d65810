// Time as a dependency. Nothing below the command line reads the system clock or starts a timer but through a Clock, so tests own time.

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `fn` once, not before `atMs`. The returned function cancels it and may be called at any time. */
  at(atMs: number, fn: () => void): () => void;
}

/** How soon a timer notices that the machine has slept, or that its clock was set forward. */
const lookMs = 15_000;

/** The machine's clock. Timers do not keep the process alive: whatever serves or works holds it open by itself. */
export const systemClock: Clock = clockOf(forwardOnly(Date.now, () => performance.now()));

/** Timers of Node by the given time. */
export function clockOf(now: () => number): Clock {
  return {
    now,
    at(atMs, fn) {
      let timer: NodeJS.Timeout;
      const arm = () => {
        const wait = Math.max(0, atMs - now());
        // Node rounds timers down to whole milliseconds, so a timer may fire just before its time: look again.
        timer = setTimeout(() => (now() < atMs ? arm() : fn()), Math.min(wait, lookMs));
        timer.unref();
      };
      arm();
      return () => clearTimeout(timer);
    },
  };
}

/**
 * The wall clock, except that it never goes back: when somebody sets it back, time goes on as the steady clock does until the wall clock
 * has caught up. Else every hold, delay and heartbeat would last longer by as much.
 */
export function forwardOnly(wall: () => number, steady: () => number): () => number {
  let knownMs = wall();
  let knownAt = steady();
  return () => {
    // In this order: a process may be held up between the two, and the other way round it would be ahead by as much from then on.
    const wallMs = wall();
    const at = steady();
    const leastMs = knownMs + (at - knownAt);
    if (wallMs <= leastMs) return Math.floor(leastMs);
    knownMs = wallMs;
    knownAt = at;
    return wallMs;
  };
}

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
