// A bus on the server's own data file: durable, without a broker, and without polling. Everything runs in one process, so a member needs no
// heartbeats.

import {
  againMsDefault,
  type Bus,
  type BusConsumer,
  type BusOptions,
  handledRecordsMax,
  type Outgoing,
  type Subscription,
} from "../core/bus/bus.ts";
import { checkTopic } from "../core/bus/check.ts";
import { appendedMax, type BusLog, groupMsMax } from "../core/bus/log.ts";
import { type Clock, pause, systemClock } from "../core/clock.ts";
import { LongshoreError } from "../core/errors.ts";
import type { FailureListener } from "../core/failure-listener.ts";
import { Latch } from "./latch.ts";

export class EmbeddedBus implements Bus {
  readonly name = "the embedded bus";
  readonly #log: BusLog;
  readonly #options: BusOptions;
  readonly #consumers = new Set<EmbeddedConsumer>();
  #members = 0;
  #closed = false;

  constructor(log: BusLog, options: BusOptions = {}) {
    this.#log = log;
    this.#options = options;
  }

  async publish(records: readonly Outgoing[]): Promise<void> {
    if (this.#closed) throw closedError();
    // The store writes everything of one turn of the event loop in one commit.
    if (records.length <= appendedMax) return this.#log.append(records);
    for (let at = 0; at < records.length; at += appendedMax) await this.#log.append(records.slice(at, at + appendedMax));
  }

  subscribe(subscription: Subscription): BusConsumer {
    if (this.#closed) throw closedError();
    const consumer = new EmbeddedConsumer(this.#log, `local-${++this.#members}`, subscription, this.#options);
    this.#consumers.add(consumer);
    void consumer.ended.then(() => this.#consumers.delete(consumer));
    return consumer;
  }

  async ensure(topics: readonly string[]): Promise<void> {
    // A topic exists as soon as it is written or read.
    for (const topic of topics) checkTopic(topic);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#consumers].map((consumer) => consumer.close()));
  }
}

/** How often a member joins its group again: a group without a join for a week is removed. */
const rejoinMs = groupMsMax / 7;

class EmbeddedConsumer implements BusConsumer {
  readonly ready: Promise<void>;
  /** Never rejects. */
  readonly ended: Promise<void>;
  readonly #log: BusLog;
  readonly #member: string;
  readonly #subscription: Subscription;
  readonly #clock: Clock;
  readonly #trouble: FailureListener | undefined;
  readonly #closing = new AbortController();
  readonly #latch = new Latch();
  readonly #what: string;
  readonly #againMs: number;
  #topics: readonly string[];
  #unwatch: () => void = () => {};
  #paused = false;
  /** Commits end in the order of their calls, so waiting for the last one is enough. */
  #committed: Promise<unknown> = Promise.resolve();

  constructor(
    log: BusLog,
    member: string,
    subscription: Subscription,
    { clock = systemClock, trouble, againMs = againMsDefault }: BusOptions,
  ) {
    this.#againMs = againMs;
    this.#log = log;
    this.#member = member;
    this.#subscription = subscription;
    this.#clock = clock;
    this.#trouble = trouble;
    this.#topics = subscription.topics;
    this.#what = `handling records of the group ${subscription.group}`;
    this.ready = this.#join(this.#topics);
    // A rejection that no caller awaits must not end the process.
    this.ready.catch(() => {});
    this.ended = this.#run();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#latch.open();
  }

  async add(topics: readonly string[]): Promise<void> {
    const fresh = topics.filter((topic) => !this.#topics.includes(topic));
    await this.#join(fresh);
    this.#topics = [...this.#topics, ...fresh];
    this.#watch();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#latch.open();
    await this.ended;
  }

  async #join(topics: readonly string[]): Promise<void> {
    const { group, from } = this.#subscription;
    for (;;) {
      try {
        await this.#log.join(group, topics, from);
        this.#trouble?.working(`joining the group ${group}`);
        return;
      } catch (error) {
        const code = error instanceof LongshoreError ? error.code : undefined;
        if (code === "LONGSHORE_BAD_INPUT" || code === "LONGSHORE_CLOSED" || this.#closing.signal.aborted) throw error;
        this.#trouble?.failing(`joining the group ${group}`, error);
        await pause(this.#clock, this.#againMs, this.#closing.signal);
      }
    }
  }

  async #run(): Promise<void> {
    try {
      await this.ready;
    } catch {
      // Callers that await `ready` receive the error.
      return;
    }
    this.#watch();
    const cancelRejoin = this.#rejoinDaily();
    while (!this.#closing.signal.aborted) {
      const { group, maxRecords = handledRecordsMax } = this.#subscription;
      const taken = this.#paused ? null : await this.#log.take({ group, member: this.#member, topics: this.#topics, max: maxRecords });
      if (taken === null) await this.#latch.wait();
      else await this.#handle(taken.id, taken.records);
    }
    cancelRejoin();
    this.#unwatch();
    await this.#committed;
    this.#log.release(this.#member);
  }

  async #handle(taken: number, records: Parameters<Subscription["handle"]>[0]): Promise<void> {
    try {
      if (records.length > 0) await this.#subscription.handle(records);
      this.#trouble?.working(this.#what);
    } catch (error) {
      this.#trouble?.failing(this.#what, error);
      await pause(this.#clock, this.#againMs, this.#closing.signal);
      this.#log.release(this.#member, taken);
      return;
    }
    // The next records are handled while these are committed; only `close` waits for the commit.
    this.#committed = this.#log.commit(this.#member, taken).catch((error) => {
      this.#trouble?.failing(this.#what, error);
      this.#log.release(this.#member, taken);
    });
  }

  #watch(): void {
    this.#unwatch();
    this.#unwatch = this.#log.watch(this.#topics, () => this.#latch.open());
  }

  #rejoinDaily(): () => void {
    let cancel: () => void;
    const arm = () => {
      cancel = this.#clock.at(this.#clock.now() + rejoinMs, () => {
        // A rejection means that the store is closed, or full for now. The next try is in a day.
        this.#log.join(this.#subscription.group, this.#topics, this.#subscription.from).catch(() => {});
        arm();
      });
    };
    arm();
    return () => cancel();
  }
}

function closedError(): LongshoreError {
  return new LongshoreError("LONGSHORE_CLOSED", "The bus has been closed.");
}
