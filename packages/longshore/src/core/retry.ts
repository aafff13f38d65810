// Retries a call while its failure is transient.

import { type Backoff, backoffMs } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import { isTransient, toError } from "./errors.ts";
import { pause } from "./pause.ts";

export interface RetryOptions {
  readonly clock: Clock;
  /** The delays between tries. */
  readonly backoff: Backoff;
  readonly random?: () => number;
  /** Ends the delays; from then on `retry` rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** The time limit since the start of the first try: a try that fails later is the last one. */
  readonly patienceMs?: number;
  readonly triesMax?: number;
  /** Whether a retry may help. Default: `isTransient`. */
  readonly mayPass?: (error: Error) => boolean;
  /** Called for each transient failure; `isLast` is true when no further try follows. */
  readonly failing?: (error: Error, isLast: boolean) => void;
}

/** Rejects with the last failure when it is final, or when no try is left. */
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
