// Renews the lease of one assignment while its handler runs and while its result is being reported. It does not depend on the handler:
// heartbeats are sent as long as the event loop is not blocked.
//
// One timer is set at any time. While a heartbeat is in flight, it is set to the end of the lease; otherwise to the next heartbeat. A
// heartbeat that fails is repeated soon. When the lease has ended by this machine's clock, it counts as lost: another worker may already
// have the work.

import type { Clock } from "../core/clock.ts";
import { LongshoreError } from "../core/errors.ts";
import type { Assignment, BeatAnswer, HoldTerms } from "./transport.ts";

/** The delay before a failed heartbeat is repeated: short compared with any lease, long enough not to flood a peer that restarts. */
const beatRetryMs = 1_000;

export interface HoldOptions {
  readonly clock: Clock;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  /** Called at most once with LONGSHORE_LEASE_LOST, and at any time with LONGSHORE_CANCELLED. */
  readonly stop: (reason: LongshoreError) => void;
  readonly failing: (what: string, error: unknown) => void;
  readonly working: (what: string) => void;
  /** Aborts when the assignment is over; passed to each heartbeat. */
  readonly over: () => AbortSignal;
}

export class Hold {
  readonly #assignment: Assignment;
  readonly #options: HoldOptions;
  readonly #everyMs: number;
  readonly #jitter: number;
  #termMs: number;
  #untilMs: number;
  #ended = false;
  #isRefused = false;
  #beating: Promise<void> | undefined;
  #disarm: () => void = () => {};

  constructor(assignment: Assignment, terms: HoldTerms, options: HoldOptions) {
    this.#assignment = assignment;
    this.#options = options;
    this.#everyMs = terms.everyMs;
    this.#jitter = terms.jitter ?? 0;
    this.#termMs = terms.termMs;
    const now = options.clock.now();
    this.#untilMs = now + terms.termMs;
    this.#arm(now + this.#pauseMs());
  }

  /** When the lease ends if no further heartbeat succeeds. */
  get untilMs(): number {
    return this.#untilMs;
  }

  /** True once heartbeats have ended, because the lease was lost or `end` was called. */
  get ended(): boolean {
    return this.#ended;
  }

  /** True when the peer has answered that the lease is over, perhaps because it has accepted a result already. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Sends a heartbeat now, or waits for the one that is in flight. */
  beat(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    this.#beating ??= this.#send().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  end(): void {
    this.#ended = true;
    this.#disarm();
  }

  #arm(atMs: number): void {
    this.#disarm();
    this.#disarm = this.#options.clock.at(Math.min(atMs, this.#untilMs), () => this.#onTimer());
  }

  #pauseMs(): number {
    if (this.#jitter === 0) return this.#everyMs;
    return Math.round(this.#everyMs * (1 + this.#jitter * (2 * this.#options.random() - 1)));
  }

  #onTimer(): void {
    if (this.#ended) return;
    if (this.#options.clock.now() >= this.#untilMs) return this.#lose("No heartbeat succeeded before the lease was over");
    void this.beat();
  }

  async #send(): Promise<void> {
    const sentMs = this.#options.clock.now();
    this.#arm(this.#untilMs);
    let answer: BeatAnswer;
    try {
      answer = await (this.#assignment.beat as NonNullable<Assignment["beat"]>).call(this.#assignment, this.#options.over());
    } catch (error) {
      if (this.#ended) return;
      this.#options.failing("heartbeat", error);
      this.#arm(this.#options.clock.now() + Math.min(beatRetryMs, this.#everyMs));
      return;
    }
    // The code from here to `stop` must not await: the handler's signal aborts in the same tick in which the reply is read.
    if (this.#ended) return;
    this.#options.working("heartbeat");
    if (answer.verdict !== "ok" && answer.verdict !== "again" && answer.verdict !== "cancel") {
      this.#isRefused = true;
      return this.#lose(`The lease is over: the reply to the heartbeat was "${answer.verdict}"`);
    }
    this.#termMs = answer.termMs ?? this.#termMs;
    // The time is counted from the sending of the heartbeat. The peer renewed the lease later, so the lease ends later than this time.
    this.#untilMs = sentMs + this.#termMs;
    this.#arm(sentMs + this.#pauseMs());
    if (answer.verdict === "cancel") this.#options.stop(new LongshoreError("LONGSHORE_CANCELLED", "cancelled"));
  }

  #lose(message: string): void {
    this.end();
    this.#options.stop(new LongshoreError("LONGSHORE_LEASE_LOST", `${message}; the result of this attempt is not wanted any more.`));
  }
}
