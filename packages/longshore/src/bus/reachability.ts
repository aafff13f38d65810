// Tracks whether a bus can be reached and, if not, since when. The bus reports failures and successes, and each `ensure` counts as one of
// them. Only the newest result matters: while a broker is down nothing succeeds, and soon after its return something does.

import type { Bus } from "../core/bus/bus.ts";
import type { Clock } from "../core/clock.ts";
import { toError } from "../core/errors.ts";
import type { FailureListener } from "../core/failure-listener.ts";

export interface OutOfReach {
  readonly since: number;
  readonly error: string;
}

export class BusReach implements FailureListener {
  readonly #next: FailureListener;
  readonly #clock: Pick<Clock, "now">;
  #out: OutOfReach | null = null;

  /** Passes the reports of the bus on to `next`. */
  constructor(next: FailureListener, clock: Pick<Clock, "now">) {
    this.#next = next;
    this.#clock = clock;
  }

  /** Null while the bus can be reached, as far as known. */
  get out(): OutOfReach | null {
    return this.#out;
  }

  /** Wraps the bus to observe its calls. The bus must report its failures to this object. */
  watch(bus: Bus): Bus {
    const { members } = bus;
    return {
      name: bus.name,
      publish: (records) => bus.publish(records),
      subscribe: (subscription) => bus.subscribe(subscription),
      ensure: async (topics, options) => {
        try {
          await bus.ensure(topics, options);
          this.#out = null;
        } catch (error) {
          this.#missed(error);
          throw error;
        }
      },
      ...(members === undefined ? {} : { members: (group: string) => members.call(bus, group) }),
      close: () => bus.close(),
    };
  }

  /** A bus also reports records that could not be handled. Those reports have no peer: the bus itself works. */
  failing(what: string, error: unknown, peer?: string): void {
    this.#next.failing(what, error, peer);
    if (peer !== undefined) this.#missed(error);
  }

  working(what: string, peer?: string): void {
    this.#next.working(what, peer);
    if (peer !== undefined) this.#out = null;
  }

  #missed(error: unknown): void {
    this.#out = { since: this.#out?.since ?? this.#clock.now(), error: toError(error).message };
  }
}
