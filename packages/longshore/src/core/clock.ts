// Time as a dependency. Below the command line, code reads the time and starts timers only through a Clock, so that tests control time.

import { uptime } from "node:os";

export { pause } from "./pause.ts";

/** The time and its timers. Tests replace it with the `TestClock` of `longshore/testing`. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `fn` once, not before `atMs`. The returned function cancels it and may be called at any time. */
  at(atMs: number, fn: () => void): () => void;
}

/** The longest delay of a timer. After this time at the latest, the clock notices that the machine has slept. */
const lookMs = 15_000;
/** Time follows steps of the wall clock up to this size at once. They are small corrections, shorter than a lease should be. */
const stepMs = 5_000;
/** How much faster time passes while it catches up. A lease then lasts two thirds of its duration; workers renew it after each third. */
const catchUpRate = 0.5;
/** How often the uptime is read while time catches up. Each read is a system call. */
const sleepLookMs = 1_000;

/** The machine's clock. Its timers do not keep the process alive; servers and workers keep it alive themselves. */
export const systemClock: Clock = clockOf(steadyTime({ wall: Date.now, steady: () => performance.now(), uptime: () => uptime() * 1_000 }));

/** A Clock that uses Node's timers and the given time. */
export function clockOf(now: () => number): Clock {
  return {
    now,
    at(atMs, fn) {
      let timer: NodeJS.Timeout;
      const arm = () => {
        const wait = Math.max(0, atMs - now());
        // Node rounds timers down to whole milliseconds, so a timer may fire slightly early: check the time again.
        timer = setTimeout(() => (now() < atMs ? arm() : fn()), Math.min(wait, lookMs));
        timer.unref();
      };
      arm();
      return () => clearTimeout(timer);
    },
  };
}

/** The clocks of a machine, in milliseconds. */
export interface MachineClocks {
  /** Since the epoch; can be set to any time. */
  wall(): number;
  /** Cannot be set; stops while the machine sleeps. */
  steady(): number;
  /** Since the machine was started, including the time it slept. */
  uptime(): number;
}

/**
 * The time for everything with a duration (leases, delays, retention). It follows the wall clock, but never goes back and does not jump
 * ahead. When the wall clock is set back, time follows the steady clock until the wall clock has caught up. When the wall clock is set
 * ahead, time passes one and a half times as fast until it has caught up. So a clock that is wrong for a minute ends no lease and removes
 * no run. Two things are followed at once: a step of at most five seconds, and a sleep of the machine, which its uptime shows.
 */
export function steadyTime({ wall, steady, uptime }: MachineClocks): () => number {
  let knownMs = wall();
  let knownAt = steady();
  let aheadMs = uptime() - knownAt;
  let lookedAt = Number.NEGATIVE_INFINITY;
  /** How long the machine has slept since the last check. */
  const sleptMs = (at: number): number => {
    if (at - lookedAt < sleepLookMs) return 0;
    lookedAt = at;
    const slept = uptime() - at - aheadMs;
    if (slept < sleepLookMs) return 0;
    aheadMs += slept;
    return slept;
  };
  return () => {
    // Read the wall clock first. The process may be paused between the two reads; in the other order, the time would stay ahead by that
    // pause.
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
