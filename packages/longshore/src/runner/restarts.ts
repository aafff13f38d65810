// Decides when a worker process that ended is started again. The first restart happens at once. Each restart sets the delay of the next
// one, which doubles every time up to a limit. The count is never reset. But when a process ended long after its last restart, it does not
// wait.

import { type Duration, durationMs } from "../core/duration.ts";

export interface RestartOptions {
  /** Whether processes are watched at all. Default: true. */
  readonly monitor?: boolean;
  /** How often processes are checked. Default: 5 s. */
  readonly interval?: Duration;
  /** Whether a process that ended is started again. Default: true. */
  readonly restart?: boolean;
  /** The limit of restarts of one worker. Default: 0, which means no limit. */
  readonly maxAttempts?: number;
  /** The delay between the first and the second restart. Default: 5 s. */
  readonly backoff?: Duration;
  /** The longest delay. Default: 5 min. */
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
  /** The delay after the last restart has not passed yet. */
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

  /** Decides whether to start the process again now; if so, the restart is counted. */
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
