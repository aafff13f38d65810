// Time as a dependency. Nothing below the command line reads the system clock or starts a timer but through a Clock, so tests own time.

import { uptime } from "node:os";

/** The time and its timers. Tests replace it with the `TestClock` of `longshore/testing`. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `fn` once, not before `atMs`. The returned function cancels it and may be called at any time. */
  at(atMs: number, fn: () => void): () => void;
}

/** How soon a timer notices that the machine has slept. */
const lookMs = 15_000;
/** Steps of the wall clock up to this are followed at once: corrections of a clock that is right, shorter than any lease should be. */
const stepMs = 5_000;
/** How much faster time passes while it catches up: a lease lasts two thirds of its term then, and workers renew it each third. */
const catchUpRate = 0.5;
/** While it catches up, how often sleep of the machine is looked for, which costs a system call. */
const sleepLookMs = 1_000;

/** The machine's clock. Timers do not keep the process alive: whatever serves or works holds it open by itself. */
export const systemClock: Clock = clockOf(steadyTime({ wall: Date.now, steady: () => performance.now(), uptime: () => uptime() * 1_000 }));

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

/** Milliseconds of a machine. */
export interface MachineClocks {
  /** Since the epoch; may be set to any time. */
  wall(): number;
  /** Cannot be set; stops while the machine sleeps. */
  steady(): number;
  /** Since the machine was started, with its sleep. */
  uptime(): number;
}

/**
 * The wall clock as far as it can be trusted: everything with a term (leases, delays, retention) uses it. It never goes back: when the wall
 * clock is set back, time follows the steady clock until the wall clock has caught up. And it does not leap: when the
 * wall clock is set ahead, time passes half as fast again until it has caught up, so a clock that is wrong for a minute ends no lease and
 * removes no run. Only sleep of the machine, which its uptime shows, is followed at once.
 */
export function steadyTime({ wall, steady, uptime }: MachineClocks): () => number {
  let knownMs = wall();
  let knownAt = steady();
  let aheadMs = uptime() - knownAt;
  let lookedAt = Number.NEGATIVE_INFINITY;
  /** What the machine has slept since the last look. */
  const sleptMs = (at: number): number => {
    if (at - lookedAt < sleepLookMs) return 0;
    lookedAt = at;
    const slept = uptime() - at - aheadMs;
    if (slept < sleepLookMs) return 0;
    aheadMs += slept;
    return slept;
  };
  return () => {
    // In this order: a process may be held up between the two, and the other way round it would be ahead by as much from then on.
    const wallMs = wall();
    const at = steady();
    let leastMs = knownMs + (at - knownAt);
    if (wallMs <= leastMs) return Math.floor(leastMs);
    if (wallMs - leastMs > stepMs) {
      const passedMs = Math.min(at - knownAt, lookMs);
      leastMs = Math.min(wallMs, leastMs + sleptMs(at));
      knownMs = wallMs - leastMs > stepMs ? leastMs + passedMs * catchUpRate : wallMs;
    } else knownMs = wallMs;
    knownAt = at;
    return Math.floor(knownMs);
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
