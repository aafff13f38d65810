// Reliable sending of messages: each message is stored before it is sent, and sent until the bus has accepted it. A message with a known id
// is not stored again, so a caller that got no answer may repeat its call. After a crash, a message is sent again when its outcome was not
// stored; receivers drop duplicates by id.
//
// Life of a message: pending -> sent, or -> failed when it was tried too often or can never be sent. A message waits for earlier messages
// with the same topic and key.

import type { Bus } from "../core/bus/bus.ts";
import type { OutboxMessage, OutboxStore, Outcome, StoredMessage } from "../core/bus/outbox-store.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { isRefused, LongshoreError, toError } from "../core/errors.ts";
import type { FailureListener } from "../core/failure-listener.ts";

export interface OutboxOptions {
  readonly bus: Pick<Bus, "publish" | "name">;
  readonly store: OutboxStore;
  /** Unique among all users of the store. */
  readonly owner: string;
  readonly triesMax?: number;
  readonly backoffMsMin?: number;
  readonly backoffMsMax?: number;
  readonly trouble?: FailureListener;
  /** Returns true for topics in which only the newest message of a key matters. There, the next message replaces an unsent one. */
  newestOnly?(topic: string): boolean;
  /** Called when a message was given up. */
  failed?(message: OutboxMessage, error: string): void;
  readonly clock?: Clock;
  readonly random?: () => number;
}

const triesMaxDefault = 12;
const backoffMsMinDefault = 250;
const backoffMsMaxDefault = 60_000;
/** The random share of a delay: messages that failed at the same time are retried at different times. */
const jitter = 0.2;
/** The limit of messages in memory. The others are read from the store later. */
const keptMax = 5_000;
const pageMessages = 1_000;

export class Outbox {
  readonly #options: OutboxOptions;
  readonly #clock: Clock;
  /** By topic and key: the first message of each chain is being sent, or waits for its next try. */
  readonly #chains = new Map<string, StoredMessage[]>();
  readonly #timers = new Set<() => void>();
  readonly #sending = new Set<Promise<void>>();
  #kept = 0;
  #failed = 0;
  /** All messages up to this id have been read into memory. */
  #readUpTo = 0;
  /** True while the store has messages that were not read into memory yet. */
  #more = true;
  #reading: Promise<void> | null = null;
  #started = false;
  /** True after the store could not be read; the read is repeated after a delay. */
  #resting = false;
  #closed = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** The number of unsent messages in memory. */
  get pending(): number {
    return this.#kept;
  }

  /** The number of messages that were given up since the start. */
  get failed(): number {
    return this.#failed;
  }

  /** Sends the messages that an earlier process stored and did not send. */
  async start(): Promise<void> {
    this.#started = true;
    this.#readOn();
    await this.#reading;
  }

  /** Durable when it resolves; sent soon after. A second message with the same topic, key and id is dropped. */
  async enqueue(message: OutboxMessage): Promise<void> {
    if (this.#closed) throw new LongshoreError("LONGSHORE_CLOSED", "The outbox has been closed.");
    const stored = await this.#options.store.add(this.#options.owner, message);
    if (stored === null || this.#closed) return;
    // While the store has older messages, this one is read after them: it must not overtake them.
    if (this.#more || this.#reading !== null || this.#kept >= keptMax) this.#more = true;
    else this.#take(stored);
    this.#readOn();
  }

  /** Waits for the messages that are being sent; to cancel them, close the bus. The next process sends the others. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const cancel of this.#timers) cancel();
    await this.#reading;
    await Promise.all(this.#sending);
    this.#options.store.leave(this.#options.owner);
  }

  /** Reads further messages when there is room and no read is in progress. */
  #readOn(): void {
    if (!this.#more || this.#reading !== null || this.#resting || !this.#started || this.#closed || this.#kept > keptMax / 2) return;
    this.#reading = this.#readPages().finally(() => {
      this.#reading = null;
      // A message that was stored just before the read ended may not be among those that were read.
      this.#readOn();
    });
  }

  async #readPages(): Promise<void> {
    const { store, owner, trouble } = this.#options;
    while (this.#more && this.#kept < keptMax && !this.#closed) {
      this.#more = false;
      try {
        const page = await store.pending(owner, this.#readUpTo, pageMessages);
        for (const message of page) this.#take(message);
        if (page.length > 0) this.#more = true;
        trouble?.working("reading the outbox");
      } catch (error) {
        this.#more = true;
        trouble?.failing("reading the outbox", error);
        this.#resting = true;
        this.#after(this.#options.backoffMsMin ?? backoffMsMinDefault, () => {
          this.#resting = false;
          this.#readOn();
        });
        return;
      }
    }
  }

  #take(message: StoredMessage): void {
    if (message.id <= this.#readUpTo) return;
    this.#readUpTo = message.id;
    this.#kept++;
    const name = chainOf(message);
    const chain = this.#chains.get(name);
    if (chain === undefined) {
      this.#chains.set(name, [message]);
      this.#plan(message);
    } else chain.push(message);
  }

  #plan(message: StoredMessage): void {
    if (this.#closed) return;
    const waitMs = message.dueAt - this.#clock.now();
    if (waitMs > 0) this.#after(waitMs, () => this.#begin(message));
    else this.#begin(message);
  }

  #after(ms: number, then: () => void): void {
    const cancel = this.#clock.at(this.#clock.now() + ms, () => {
      this.#timers.delete(cancel);
      if (!this.#closed) then();
    });
    this.#timers.add(cancel);
  }

  #begin(message: StoredMessage): void {
    const sending = this.#send(message).finally(() => this.#sending.delete(sending));
    this.#sending.add(sending);
  }

  /** Never rejects. */
  async #send(message: StoredMessage): Promise<void> {
    const { bus, trouble } = this.#options;
    const { topic, key, value, retry } = message;
    let outcome: Outcome = { state: "sent" };
    try {
      if (!this.#isOutdated(message)) await bus.publish([{ topic, key, value, ...(retry === undefined ? {} : { retry }) }]);
    } catch (thrown) {
      // The close cancelled the sending, so the message stays pending.
      if (this.#closed) return;
      outcome = this.#afterFailure(message, toError(thrown));
    }
    try {
      await this.#options.store.settle(message, outcome);
      trouble?.working("recording what the outbox has sent");
    } catch (error) {
      // The message is sent again after a restart, and receivers drop it; nothing else is lost.
      trouble?.failing("recording what the outbox has sent", error);
    }
    if (outcome.state === "failed") {
      this.#failed++;
      this.#options.failed?.(message, outcome.error);
    }
    if (outcome.state === "pending") this.#plan(this.#replace(message, outcome));
    else this.#next(message);
  }

  #isOutdated(message: StoredMessage): boolean {
    const behind = (this.#chains.get(chainOf(message))?.length ?? 0) > 1;
    return behind && this.#options.newestOnly?.(message.topic) === true;
  }

  #afterFailure(message: StoredMessage, error: Error): Outcome {
    const { triesMax = triesMaxDefault } = this.#options;
    const attempts = message.attempts + 1;
    if (attempts >= triesMax || isRefused(error)) return { state: "failed", attempts, error: error.message };
    return { state: "pending", attempts, dueAt: this.#clock.now() + this.#backoffMs(attempts), error: error.message };
  }

  #backoffMs(attempts: number): number {
    const { backoffMsMin = backoffMsMinDefault, backoffMsMax = backoffMsMaxDefault, random = Math.random } = this.#options;
    const ms = Math.min(backoffMsMax, Math.max(backoffMsMin, 2 ** attempts * 100));
    return Math.round(ms * (1 + jitter * (2 * random() - 1)));
  }

  #replace(message: StoredMessage, { attempts, dueAt }: { readonly attempts: number; readonly dueAt: number }): StoredMessage {
    const next = { ...message, attempts, dueAt };
    const chain = this.#chains.get(chainOf(message));
    if (chain !== undefined) chain[0] = next;
    return next;
  }

  #next(message: StoredMessage): void {
    this.#kept--;
    const chain = this.#chains.get(chainOf(message));
    chain?.shift();
    const [next] = chain ?? [];
    if (next === undefined) this.#chains.delete(chainOf(message));
    else this.#plan(next);
    this.#readOn();
  }
}

function chainOf({ topic, key }: OutboxMessage): string {
  return `${topic} ${key}`;
}
