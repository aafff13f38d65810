// Waits that end with a signal of the caller, or after a time.

import type { Clock } from "../core/clock.ts";
import { durationMs, formatDuration } from "../core/duration.ts";
import { LongshoreError } from "../core/errors.ts";
import type { WaitOptions } from "./client.ts";

/**
 * Performs `work` with a signal. It aborts when the caller's signal aborts or, with the reason LONGSHORE_DEADLINE, when `timeout` has
 * passed. `what` is the subject of the error message.
 */
export async function withDeadline<Value>(
  { signal, timeout }: WaitOptions,
  { clock, what }: { readonly clock: Clock; readonly what: string },
  work: (signal: AbortSignal | undefined) => Promise<Value>,
): Promise<Value> {
  if (timeout === undefined) return work(signal);
  const ms = durationMs(timeout, "timeout");
  const over = new AbortController();
  const stop = clock.at(clock.now() + ms, () => over.abort(late(what, ms)));
  try {
    return await work(signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]));
  } finally {
    stop();
  }
}

function late(what: string, ms: number): LongshoreError {
  return new LongshoreError("LONGSHORE_DEADLINE", `${what} has not ended within ${formatDuration(ms)}; it continues.`, {
    detail: { field: "timeout" },
  });
}
