// Messages that must be sent, whatever happens: kept before they are sent, and sent until the bus has taken them. What was kept once is
// not kept again, so that a sender that is not sure may repeat it. A crash between sending and recording that sends again: receivers drop
// duplicates by id.
//
// Life of a message: pending -> sent, or -> failed when it was tried too often or can never be sent. One of a key waits for those before
// it.

import { type Clock, systemClock } from "../core/clock.ts";
import { isRefused, LongshoreError, toError } from "../core/errors.ts";
import type { FailureListener } from "../core/failure-listener.ts";
import type { Bus } from "./bus.ts";

export interface OutboxMessage {
  readonly topic: string;
  readonly key: string;
  /** With topic and key, what makes it the same message as another. */
  readonly dedupId: string;
  readonly value: string;
  /** As of `Outgoing`. */
  readonly retry?: number;
}

export interface StoredMessage extends OutboxMessage {
  /** Rises in the order in which messages came. */
  readonly id: number;
  /** How often it could not be sent. */
  readonly attempts: number;
  /** Not to be tried before. */
  readonly dueAt: number;
}

export type Outcome =
  | { readonly state: "sent" }
  | { readonly state: "pending"; readonly attempts: number; readonly dueAt: number; readonly error: string }
  | { readonly state: "failed"; readonly attempts: number; readonly error: string };

/** The port to a store. Everything is durable when it resolves. */
export interface OutboxStore {
  /** Keeps a message for `owner`, who sends it; null when it was kept before, whatever became of it. */
  add(owner: string, message: OutboxMessage): Promise<StoredMessage | null>;
  /** Pending messages of `owner` after an id, in order. Takes over those of owners that are gone. */
  pending(owner: string, after: number, limit: number): Promise<StoredMessage[]>;
  /** Notes what has become of a message. */
  settle(message: StoredMessage, outcome: Outcome): Promise<void>;
  /** The owner sends no more: others may take over. */
  leave(owner: string): void;
}

export interface OutboxOptions {
  readonly bus: Pick<Bus, "publish" | "name">;
  readonly store: OutboxStore;
  /** Unlike any other's that may use the store. */
  readonly owner: string;
  readonly triesMax?: number;
  readonly backoffMsMin?: number;
  readonly backoffMsMax?: number;
  readonly trouble?: FailureListener;
  /** Of which topics only the newest message of a key matters: one that has not been sent when the next comes is left out. */
  newestOnly?(topic: string): boolean;
  /** A message was given up. */
  failed?(message: OutboxMessage, error: string): void;
  readonly clock?: Clock;
  readonly random?: () => number;
}

const triesMaxDefault = 12;
const backoffMsMinDefault = 250;
const backoffMsMaxDefault = 60_000;
/** The share of a pause that is drawn at random, so that many that failed together do not come back together. */
const jitter = 0.2;
/** Messages in memory; the others are read when these are sent. */
const keptMax = 5_000;
const pageMessages = 1_000;

export class Outbox {
  readonly #options: OutboxOptions;
  readonly #clock: Clock;
  /** By topic and key: the first of each is being sent, or waits for its next try. */
  readonly #chains = new Map<string, StoredMessage[]>();
  readonly #timers = new Set<() => void>();
  readonly #sending = new Set<Promise<void>>();
  #kept = 0;
  #failed = 0;
  /** All up to this id were in memory. */
  #readUpTo = 0;
  /** There are messages in the store that were not in memory yet. */
  #more = true;
  #reading: Promise<void> | null = null;
  #started = false;
  /** The store could not be read; it is tried again after a pause. */
  #resting = false;
  #closed = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Messages in memory that have not been sent. */
  get pending(): number {
    return this.#kept;
  }

  /** Messages that were given up since the start. */
  get failed(): number {
    return this.#failed;
  }

  /** Sends what an earlier process has left. */
  async start(): Promise<void> {
    this.#started = true;
    this.#readOn();
    await this.#reading;
  }

  /** Durable when it resolves; sent soon after. A second one with this topic, key and id is left out. */
  async enqueue(message: OutboxMessage): Promise<void> {
    if (this.#closed) throw new LongshoreError("LONGSHORE_CLOSED", "The outbox has been closed.");
    const stored = await this.#options.store.add(this.#options.owner, message);
    if (stored === null || this.#closed) return;
    // Behind those that are still to be read, or it would overtake them.
    if (this.#more || this.#reading !== null || this.#kept >= keptMax) this.#more = true;
    else this.#take(stored);
    this.#readOn();
  }

  /** Waits for what is being sent, which the end of the bus cuts short; the next process sends what is left. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const cancel of this.#timers) cancel();
    await this.#reading;
    await Promise.all(this.#sending);
    this.#options.store.leave(this.#options.owner);
  }

  /** Reads what is not in memory, when there is room for it and no read is in progress. */
  #readOn(): void {
    if (!this.#more || this.#reading !== null || this.#resting || !this.#started || this.#closed || this.#kept > keptMax / 2) return;
    this.#reading = this.#readPages().finally(() => {
      this.#reading = null;
      // What came in the last moment was left to the read in progress.
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
      // Cut short by the end, which has no meaning for the message: it stays as it was.
      if (this.#closed) return;
      outcome = this.#afterFailure(message, toError(thrown));
    }
    try {
      await this.#options.store.settle(message, outcome);
      trouble?.working("noting what the outbox has sent");
    } catch (error) {
      // Sent again after a restart, which receivers leave out; nothing else is lost.
      trouble?.failing("noting what the outbox has sent", error);
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
