// One call that is tried again while its failure may pass.

import { type Backoff, backoffMs } from "./backoff.ts";
import { type Clock, pause } from "./clock.ts";
import { isTransient, toError } from "./errors.ts";

export interface RetryOptions {
  readonly clock: Clock;
  /** The pauses between tries. */
  readonly backoff: Backoff;
  readonly random?: () => number;
  /** Ends the pauses; from then on `retry` rejects with its reason. */
  readonly signal?: AbortSignal;
  /** A try that fails so long after the first began is the last one. */
  readonly patienceMs?: number;
  readonly triesMax?: number;
  /** Whether another try may help; by default for a peer that is not there or cannot write. */
  readonly mayPass?: (error: Error) => boolean;
  /** Notified of each failure that may pass, and whether it was the last try. */
  readonly failing?: (error: Error, isLast: boolean) => void;
}

/** Rejects with the last failure when it is final, or when there is no try left. */
export async function retry<Value>(call: () => Promise<Value>, options: RetryOptions): Promise<Value> {
  const { clock, signal, mayPass = isTransient, random = Math.random } = options;
  const { patienceMs = Number.POSITIVE_INFINITY, triesMax = Number.POSITIVE_INFINITY } = options;
  const startedMs = clock.now();
  for (let tries = 1; ; tries++) {
    signal?.throwIfAborted();
    try {
      return await call();
    } catch (thrown) {
      signal?.throwIfAborted();
      const error = toError(thrown);
      if (!mayPass(error)) throw error;
      const isLast = tries >= triesMax || clock.now() - startedMs >= patienceMs;
      options.failing?.(error, isLast);
      if (isLast) throw error;
    }
    await pause(clock, backoffMs(options.backoff, tries, random()), signal);
  }
}
