// Measures how late the event loop is, and names the cause when it is known. A timer that should fire every few milliseconds fires late
// when something blocks the loop. The longest piece of work since the timer last fired is named if it explains most of the delay.

import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";

/** Is notified of each piece of work that ran without a pause. */
export interface Stopwatch {
  /** `what` is a route, a gRPC method, or another name that an operator knows. */
  ran(what: string, ms: number): void;
}

export interface WatchdogOptions {
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
  /** Calls `tick` every `ms` milliseconds until the returned function is called. */
  readonly every?: (ms: number, tick: () => void) => () => void;
}

export interface Watchdog extends Stopwatch {
  /** Starts measuring. Work during the start of a server delays no request. */
  begin(): void;
  stop(): void;
}

/** Shorter work does not delay other requests and is not named. */
export const noticedMs = 5;

/** The interval of the timer. Smaller delays are not noticed. */
const tickMs = 20;
/** A stall of this length is logged: requests of all clients have waited for it. */
const stallMs = 100;
/** At most one line in this time; the next line has the number of stalls. */
const quietMs = 10_000;
/** Upper bounds in seconds: delays up to 20 ms are normal, and delays above 100 ms are logged. */
const bounds = [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

export function createWatchdog({ metrics, logger, now = () => performance.now(), every = everyMs }: WatchdogOptions): Watchdog {
  const delays = metrics.histogram("longshore_event_loop_delay_seconds", "How late the event loop was.", bounds).with();
  const stalls = metrics.counter("longshore_event_loop_stalls_total", "Times that the event loop was blocked for 100 ms or longer.").with();
  let dueAt = 0;
  let stop = () => {};
  let longest = { what: "", ms: 0 };
  let quietUntil = Number.NEGATIVE_INFINITY;
  let unreported = 0;

  const tell = (lateMs: number) => {
    stalls.add();
    unreported++;
    if (now() < quietUntil) return;
    // Work that took only a small part of the delay is not its cause.
    const cause = longest.ms >= lateMs / 2 ? { route: longest.what, routeMs: Math.round(longest.ms) } : {};
    logger.warn("The event loop was blocked, and every request waited", { ms: Math.round(lateMs), ...cause, times: unreported });
    unreported = 0;
    quietUntil = now() + quietMs;
  };

  const tick = () => {
    const lateMs = Math.max(0, now() - dueAt);
    delays.observe(lateMs / 1_000);
    if (lateMs >= stallMs) tell(lateMs);
    dueAt = now() + tickMs;
    longest = { what: "", ms: 0 };
  };
  return {
    begin() {
      dueAt = now() + tickMs;
      stop = every(tickMs, tick);
    },
    ran(what, ms) {
      if (ms > longest.ms) longest = { what, ms };
    },
    stop: () => stop(),
  };
}

/** Does not keep the process alive. Each timer is set after the previous one has fired, so a long stall is one late call. */
function everyMs(ms: number, tick: () => void): () => void {
  let timer: NodeJS.Timeout;
  const next = () => {
    timer = setTimeout(() => {
      tick();
      next();
    }, ms);
    timer.unref();
  };
  next();
  return () => clearTimeout(timer);
}
