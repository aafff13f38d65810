// A Kafka consumer: fetches ahead while records are handled, delivers whole batches, and commits afterwards. It survives every broker
// failure: after an error it starts again with a new client, after a delay.

import { againMsDefault, type BusConsumer, type BusRecord, handledRecordsMax, type Subscription } from "../../core/bus/bus.ts";
import { type Clock, pause, systemClock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import { Latch } from "../latch.ts";
import { clientOptions, hangUp, hungUpHint, type KafkaModule, messageOf, refusalOf, within } from "./client.ts";
import { rawFetches } from "./fetch.ts";
import { Generation } from "./generation.ts";
import { Membership } from "./membership.ts";
import type { KafkaBusOptions } from "./options.ts";
import { Shutdown } from "./shutdown.ts";
import type { KafkaTopics } from "./topics.ts";
import { unpacker } from "./unpack.ts";

/** The default of Python clients: all members of one group should be detected as lost after the same time. */
const sessionMsDefault = 10_000;
/** Each check is one small request for each group. Other clients check every five minutes. */
const lookMsDefault = 60_000;
/** The time limit for reading the topics, with all brokers asked one after the other. */
const ensureMsMax = 60_000;

export interface KafkaConsumerDeps {
  readonly kafka: KafkaModule;
  readonly options: KafkaBusOptions;
  readonly topics: KafkaTopics;
  readonly name: string;
}

export class KafkaConsumer implements BusConsumer {
  readonly ready: Promise<void>;
  /** Never rejects. */
  readonly ended: Promise<void>;
  readonly #deps: KafkaConsumerDeps;
  readonly #subscription: Subscription;
  readonly #clock: Clock;
  readonly #closing = new Shutdown();
  readonly #latch = new Latch();
  readonly #membership: Membership;
  readonly #what: string;
  readonly #reading: string;
  readonly #again: () => Promise<void>;
  #waiting: { topics: readonly string[]; resolve(): void; reject(error: unknown): void }[] = [];
  #topics: readonly string[];
  #paused = false;
  /** A batch was skipped since records were last handled. */
  #hasUnreadable = false;
  #generation: Generation | undefined;
  /** The running call of `handle`: there is never a second one, even when the group changes. */
  #handling: Promise<unknown> = Promise.resolve();

  constructor(deps: KafkaConsumerDeps, subscription: Subscription) {
    const { clock = systemClock, againMs = againMsDefault, sessionMs = sessionMsDefault, beatMs = sessionMs / 3 } = deps.options;
    this.#deps = deps;
    this.#subscription = subscription;
    this.#clock = clock;
    this.#topics = [...new Set(subscription.topics)];
    const { group } = subscription;
    const unreadable = (members: readonly string[]) => this.#judged(members);
    this.#membership = new Membership({ kafka: deps.kafka, group, sessionMs, beatMs, closing: this.#closing, unreadable });
    this.#what = `taking records of the group ${subscription.group} from ${deps.name}`;
    this.#reading = `reading records of the group ${subscription.group}`;
    this.#again = () => pause(this.#clock, againMs, this.#closing.begun);
    this.ready = this.#received(this.#topics);
    this.ready.catch(() => {
      // Callers that await the promise receive the error.
    });
    this.ended = this.#run();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#latch.open();
  }

  add(topics: readonly string[]): Promise<void> {
    this.#topics = [...new Set([...this.#topics, ...topics])];
    const received = this.#received(topics);
    this.#generation?.end();
    return received;
  }

  async close(): Promise<void> {
    await this.#closing.until(() => {
      this.#generation?.end();
      this.#latch.open();
      return this.ended;
    });
  }

  #received(topics: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => this.#waiting.push({ topics, resolve, reject }));
  }

  async #run(): Promise<void> {
    const { trouble } = this.#deps.options;
    while (!this.#closing.begun.aborted) {
      try {
        await this.#session();
      } catch (error) {
        if (this.#closing.begun.aborted) break;
        const { name, options } = this.#deps;
        trouble?.failing(this.#what, refusalOf(error, name) ?? `${messageOf(error)}${hungUpHint(error, options)}`, name);
        await this.#again();
      }
    }
    await this.#leaveLate();
    const closed = new LongshoreError("LONGSHORE_CLOSED", "The consumer has been closed.");
    for (const { reject } of this.#waiting.splice(0)) reject(closed);
  }

  /** The life of one client. Throws when the connection to the broker fails. */
  async #session(): Promise<void> {
    const { topics } = this.#deps;
    const closing = this.#closing;
    const membership = this.#membership;
    const ensured = () => within(ensureMsMax, topics.ensure(this.#topics), closing.begun);
    await ensured();
    const { client, fetching } = this.#dial();
    try {
      while (!closing.begun.aborted) {
        await ensured();
        for (const topic of this.#topics) if (!client.topics.current.includes(topic)) client.topics.track(topic);
        const wanted = this.#topics;
        const { assignment, added } = await membership.join(wanted);
        const generation = new Generation({
          client,
          fetching: rawFetches(this.#deps.kafka, fetching),
          unpack: unpacker(this.#deps.kafka),
          unreadable: (place, reason) =>
            this.#unreadable(place, `cannot be read and is left out: ${reason}. Look at what writes to this topic.`),
          waits: (place, reason) => this.#unreadable(place, `waits, with all that follow in its partition: ${reason}.`),
          assignment,
          from: this.#subscription.from,
          added,
          late: closing.late,
          wake: () => this.#latch.open(),
        });
        this.#generation = generation;
        await this.#live(generation, wanted);
      }
      await membership.leave();
    } finally {
      this.#generation = undefined;
      await hangUp(client, fetching);
    }
  }

  #judged(unreadable: readonly string[]): void {
    const what = `sharing out the partitions of the group ${this.#subscription.group}`;
    const { trouble } = this.#deps.options;
    const which = `${unreadable.length} of its members get none, for their subscriptions cannot be read (${unreadable[0]})`;
    if (unreadable.length === 0) trouble?.working(what);
    else trouble?.failing(what, new LongshoreError("LONGSHORE_BAD_INPUT", `${which}. Check which programs join this group.`));
  }

  #unreadable(place: string, what: string): void {
    const message = `A batch of records at ${place} ${what}`;
    this.#hasUnreadable = true;
    this.#deps.options.trouble?.failing(this.#reading, new LongshoreError("LONGSHORE_LIMIT", message));
  }

  #dial() {
    const { kafka, options } = this.#deps;
    const client = new kafka.Consumer({ ...clientOptions(options), requestTimeout: 2 * 330_000, groupId: this.#subscription.group });
    const fetching = new kafka.ConnectionPool(client.clientId, clientOptions(options));
    this.#membership.use(client);
    return { client, fetching };
  }

  /**
   * Leaves the group after an error, or when the consumer is closed during a join. A broker answers the requests of one connection in
   * order, and a join may wait long. So this uses a separate client.
   */
  async #leaveLate(): Promise<void> {
    if (!this.#membership.isKnown) return;
    const { client, fetching } = this.#dial();
    try {
      await this.#membership.leave();
    } catch {
      // The broker is not reachable. Our session expires by itself.
    } finally {
      await hangUp(client, fetching);
    }
  }

  async #live(generation: Generation, wanted: readonly string[]): Promise<void> {
    const beats = this.#membership.beatUntilOver(generation.over).finally(() => {
      generation.end();
      this.#latch.open();
    });
    // Awaited below, after everything that it ends has ended.
    beats.catch(() => {});
    try {
      await generation.begin();
      this.#deps.options.trouble?.working(this.#what, this.#deps.name);
      this.#tellReady(wanted);
      void generation.fetchUntilOver();
      void this.#watchPartitions(generation);
      await this.#handleAll(generation);
    } finally {
      generation.end();
      // This rejection causes the other errors, so it is the one to report.
      await beats;
    }
  }

  /** Only the leader of a group checks whether partitions were added. When it joins again, all partitions are assigned again. */
  async #watchPartitions(generation: Generation): Promise<void> {
    const { lookMs = lookMsDefault } = this.#deps.options;
    while (!generation.over.aborted) {
      await pause(this.#clock, lookMs, generation.over);
      // An unreachable broker is reported by the code that needs it.
      if (!generation.over.aborted && (await this.#membership.hasOutgrown().catch(() => false))) generation.end();
    }
  }

  #tellReady(received: readonly string[]): void {
    const done = this.#waiting.filter(({ topics }) => topics.every((topic) => received.includes(topic)));
    this.#waiting = this.#waiting.filter((one) => !done.includes(one));
    for (const { resolve } of done) resolve();
  }

  /** Handles records until the generation is over; then commits the handled ones. */
  async #handleAll(generation: Generation): Promise<void> {
    const { maxRecords = handledRecordsMax } = this.#subscription;
    // Waits for a call of `handle` of an earlier generation.
    await this.#handling;
    while (!generation.over.aborted) {
      const records = this.#paused ? null : generation.take(maxRecords);
      if (records === null) await this.#latch.wait();
      else await this.#handle(generation, records);
    }
    await generation.committed();
  }

  /** Repeats the call until it succeeds, or until the records may belong to another member. */
  async #handle(generation: Generation, records: readonly BusRecord[]): Promise<void> {
    const { trouble } = this.#deps.options;
    const what = `handling records of the group ${this.#subscription.group}`;
    while (true) {
      const call = this.#subscription.handle(records);
      this.#handling = call.catch(() => {});
      try {
        await generation.patiently(call);
        trouble?.working(what);
        if (this.#hasUnreadable) trouble?.working(this.#reading);
        this.#hasUnreadable = false;
        generation.done();
        return;
      } catch (error) {
        if (generation.over.aborted) return;
        trouble?.failing(what, error);
        await this.#again();
        if (generation.over.aborted) return;
      }
    }
  }
}
