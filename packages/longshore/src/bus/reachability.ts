// Whether a bus can be reached now, and since when not: from the failures that it reports, and from reading its topics. The
// newest result counts, because nothing works while a broker is away, and something does soon after it is back.

import type { Clock } from "../core/clock.ts";
import { toError } from "../core/errors.ts";
import type { FailureListener } from "../core/failure-listener.ts";
import type { Bus } from "./bus.ts";

export interface OutOfReach {
  readonly since: number;
  readonly error: string;
}

export class BusReach implements FailureListener {
  readonly #next: FailureListener;
  readonly #clock: Pick<Clock, "now">;
  #name: string | null = null;
  #out: OutOfReach | null = null;

  /** Reports of the bus are passed on to `next` as well. */
  constructor(next: FailureListener, clock: Pick<Clock, "now">) {
    this.#next = next;
    this.#clock = clock;
  }

  /** Null while it can be reached, as far as is known. */
  get out(): OutOfReach | null {
    return this.#out;
  }

  /** The same bus, observed. The bus must report its failures to this object. */
  watch(bus: Bus): Bus {
    this.#name = bus.name;
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

  failing(what: string, error: unknown): void {
    this.#next.failing(what, error);
    if (this.#isOfBus(what)) this.#missed(error);
  }

  working(what: string): void {
    this.#next.working(what);
    if (this.#isOfBus(what)) this.#out = null;
  }

  #missed(error: unknown): void {
    this.#out = { since: this.#out?.since ?? this.#clock.now(), error: toError(error).message };
  }

  /** A bus also reports records that could not be handled, which is no failure of the bus: then it is not named. */
  #isOfBus(what: string): boolean {
    return this.#name !== null && what.endsWith(this.#name);
  }
}
