// Slots for commands. A worker reads commands only while it has a slot, so no command waits here while another worker is idle. One slot is
// kept ready; without one, the consumers are paused.

import type { BusConsumer } from "../../../core/bus/bus.ts";
import type { Slot, TransportHost } from "../../../runner/transport.ts";

/** The maximum wait of a command for a slot. A command waits only when commands of several roles arrive at the same moment. */
const patienceMs = 1_000;

export class Intake {
  readonly #host: TransportHost;
  readonly #consumers: BusConsumer[] = [];
  /** Consumers of roles that have reached their concurrency. */
  readonly #blocked = new Set<BusConsumer>();
  /** Commands of several roles may arrive at once. */
  readonly #waiting: ((slot: Slot | undefined) => void)[] = [];
  #spare: Slot | undefined;
  #refilling = false;
  #paused = false;
  #disarm: () => void = () => {};

  constructor(host: TransportHost) {
    this.#host = host;
    host.draining.addEventListener("abort", () => this.#end(), { once: true });
  }

  /** From now on, pauses and resumes this consumer. */
  attach(consumer: BusConsumer): void {
    this.#consumers.push(consumer);
    if (this.#paused) consumer.pause();
    void this.#refill();
  }

  /** Stops commands for this consumer, even if slots are free, until it is unblocked. */
  block(consumer: BusConsumer): void {
    this.#blocked.add(consumer);
    consumer.pause();
  }

  unblock(consumer: BusConsumer): void {
    if (this.#blocked.delete(consumer) && !this.#paused) consumer.resume();
  }

  /**
   * A slot for a command. Undefined when no slot becomes free within a second, or when the worker drains. Then the command is not committed
   * on the bus, which delivers it again later. The wait is short, because Kafka cannot move records to another worker before this wait
   * ends.
   */
  take(): Promise<Slot | undefined> {
    if (this.#host.draining.aborted) return Promise.resolve(undefined);
    const spare = this.#spare;
    if (spare !== undefined) {
      this.#spare = undefined;
      this.#disarm();
      void this.#refill();
      return Promise.resolve(spare);
    }
    return new Promise((resolve) => {
      const { clock } = this.#host;
      const waiting = (slot: Slot | undefined) => {
        disarm();
        resolve(slot);
      };
      const disarm = clock.at(clock.now() + patienceMs, () => {
        const at = this.#waiting.indexOf(waiting);
        if (at >= 0) this.#waiting.splice(at, 1);
        resolve(undefined);
      });
      this.#waiting.push(waiting);
      void this.#refill();
    });
  }

  /** Only one refill runs at a time. */
  async #refill(): Promise<void> {
    if (this.#refilling || this.#spare !== undefined) return;
    this.#refilling = true;
    let slot: Slot | undefined;
    for (;;) {
      slot = this.#host.slots.takeFree(1)[0];
      if (slot === undefined) {
        this.#pause(true);
        slot = await this.#host.slots.take(this.#host.draining);
      }
      const waiting = slot === undefined ? undefined : this.#waiting.shift();
      if (waiting === undefined) break;
      waiting(slot);
    }
    this.#refilling = false;
    if (slot === undefined) return;
    if (this.#host.draining.aborted) return slot.release();
    this.#spare = slot;
    this.#pause(false);
    this.#shareIn(slot);
  }

  /** When several transports share the slots, an unused slot is passed on. */
  #shareIn(slot: Slot): void {
    const { clock, waitMsMax } = this.#host;
    if (waitMsMax === Number.POSITIVE_INFINITY) return;
    this.#disarm = clock.at(clock.now() + waitMsMax, () => {
      if (this.#spare !== slot) return;
      this.#spare = undefined;
      slot.release();
      void this.#refill();
    });
  }

  #pause(paused: boolean): void {
    if (paused === this.#paused) return;
    this.#paused = paused;
    for (const consumer of this.#consumers) {
      if (paused) consumer.pause();
      else if (!this.#blocked.has(consumer)) consumer.resume();
    }
  }

  #end(): void {
    this.#disarm();
    this.#spare?.release();
    this.#spare = undefined;
    for (const waiting of this.#waiting.splice(0)) waiting(undefined);
  }
}
