// When a worker process that ended is started again. The first restart happens at once; each one sets how long the next must wait, twice
// as long every time, up to a limit. The count is never forgotten, but a process that ended long after its last restart waits for nothing.

import { type Duration, durationMs } from "../core/duration.ts";

export interface RestartOptions {
  /** Whether processes are watched at all; true by default. */
  readonly monitor?: boolean;
  /** How often they are checked; the default is 5 s. */
  readonly interval?: Duration;
  /** Whether one that ended is started again; true by default. */
  readonly restart?: boolean;
  /** How many restarts one worker gets; 0, the default, is without limit. */
  readonly maxAttempts?: number;
  /** How long the second restart waits after the first; the default is 5 s. */
  readonly backoff?: Duration;
  /** The longest such wait; the default is 5 min. */
  readonly backoffMax?: Duration;
}

export interface RestartConfig {
  readonly monitor: boolean;
  readonly intervalMs: number;
  readonly restart: boolean;
  readonly maxAttempts: number;
  readonly backoffMs: number;
  readonly backoffMsMax: number;
}

const intervalMsDefault = 5_000;
const backoffMsDefault = 5_000;
const backoffMsMaxDefault = 300_000;

export function restartConfig(options: RestartOptions = {}): RestartConfig {
  return {
    monitor: options.monitor ?? true,
    intervalMs: durationMs(options.interval ?? intervalMsDefault, "interval"),
    restart: options.restart ?? true,
    maxAttempts: options.maxAttempts ?? 0,
    backoffMs: durationMs(options.backoff ?? backoffMsDefault, "backoff"),
    backoffMsMax: durationMs(options.backoffMax ?? backoffMsMaxDefault, "backoffMax"),
  };
}

export type RestartDecision =
  | { readonly kind: "now"; readonly attempt: number; readonly backoffMs: number }
  /** The wait that the last restart set is not over. */
  | { readonly kind: "wait"; readonly untilMs: number }
  | { readonly kind: "never"; readonly attempts: number };

/** The restarts of one worker. */
export class Restarts {
  readonly #config: RestartConfig;
  #count = 0;
  #nextAtMs = 0;

  constructor(config: RestartConfig) {
    this.#config = config;
  }

  get count(): number {
    return this.#count;
  }

  /** Whether to start it again now; if so, that is counted. */
  decide(nowMs: number): RestartDecision {
    const { maxAttempts, backoffMs, backoffMsMax } = this.#config;
    if (maxAttempts > 0 && this.#count >= maxAttempts) return { kind: "never", attempts: this.#count };
    if (nowMs < this.#nextAtMs) return { kind: "wait", untilMs: this.#nextAtMs };
    const waitMs = Math.min(backoffMs * 2 ** this.#count, backoffMsMax);
    this.#nextAtMs = nowMs + waitMs;
    this.#count++;
    return { kind: "now", attempt: this.#count, backoffMs: waitMs };
  }
}
