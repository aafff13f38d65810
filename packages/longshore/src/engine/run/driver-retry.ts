// How often the turns of a durable function are tried again.

import type { RetryPolicy } from "./plan.ts";

/**
 * When a turn fails, the cause is usually the server or the worker. An error that the function throws does not fail the turn: it is part of
 * the report.
 */
export const driverRetry: RetryPolicy = {
  failures: 10,
  lost: 20,
  backoff: { kind: "exponential", delayMs: 500, maxMs: 30_000, jitter: 0.2 },
  lostBackoff: { kind: "exponential", delayMs: 100, maxMs: 10_000, jitter: 0.2 },
  retryUnclaimed: true,
  timeoutSpends: "lost",
};
