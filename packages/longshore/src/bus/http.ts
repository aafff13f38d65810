// The bus of a Longshore server, for programs in other processes. A request publishes records, and a long poll takes them. The next poll
// acknowledges them.

import { randomUUID } from "node:crypto";
import {
  againMsDefault,
  type Bus,
  type BusConsumer,
  type BusOptions,
  handledRecordsMax,
  type Outgoing,
  type Subscription,
} from "../core/bus/bus.ts";
import { checkOutgoing, checkTopic } from "../core/bus/check.ts";
import { type Clock, pause, systemClock } from "../core/clock.ts";
import { codeOf, isTransient, LongshoreError, toError } from "../core/errors.ts";
import { retry } from "../core/retry.ts";
import { JsonClient } from "../net/http/json-client.ts";
import {
  memberMs,
  publishBody,
  publishBytesMax,
  publishPath,
  publishRecordsMax,
  readTakeAnswer,
  type TakeAnswer,
  type TakeRequest,
  takePath,
  takeRecordsMax,
  takeWaitMsMax,
} from "./http-wire.ts";
import { Latch } from "./latch.ts";
import { PublishBatcher } from "./publish-batcher.ts";

export interface HttpBusOptions extends BusOptions {
  /** The address of the server's bus; its operations have paths below it. */
  readonly url: string | URL;
  readonly token?: string;
  /** How long `publish` keeps trying before it rejects. */
  readonly patienceMs?: number;
}

/** A restart of the server takes less time. */
const patienceMsDefault = 30_000;

export function openHttpBus(options: HttpBusOptions): Bus {
  return new HttpBus(options);
}

class HttpBus implements Bus {
  readonly name: string;
  readonly #options: HttpBusOptions;
  readonly #clock: Clock;
  readonly #consumers = new Set<HttpConsumer>();
  readonly #batcher: PublishBatcher;
  readonly #closing = new AbortController();
  #client: Promise<JsonClient> | undefined;

  constructor(options: HttpBusOptions) {
    const url = new URL(options.url);
    this.name = `the bus at ${url.origin}`;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#batcher = new PublishBatcher({
      send: (records) => this.#publish(records),
      bytesMax: publishBytesMax,
      recordsMax: publishRecordsMax,
    });
  }

  async publish(records: readonly Outgoing[]): Promise<void> {
    if (this.#closing.signal.aborted) throw closedError();
    checkOutgoing(records);
    await this.#batcher.add(records);
  }

  subscribe(subscription: Subscription): BusConsumer {
    if (this.#closing.signal.aborted) throw closedError();
    const ask: Ask = (body, waitMs, signal) => this.#request(takePath, body, waitMs, signal);
    const consumer = new HttpConsumer(ask, subscription, this.#options, this.name);
    this.#consumers.add(consumer);
    void consumer.ended.then(() => this.#consumers.delete(consumer));
    return consumer;
  }

  async ensure(topics: readonly string[]): Promise<void> {
    // The server creates a topic when it is first written or read.
    for (const topic of topics) checkTopic(topic);
  }

  async close(): Promise<void> {
    this.#closing.abort(closedError());
    await this.#batcher.idle();
    await Promise.all([...this.#consumers].map((consumer) => consumer.close()));
    const client = await this.#client;
    this.#client = undefined;
    await client?.close();
  }

  async #publish(records: readonly Outgoing[]): Promise<void> {
    const body = publishBody(records);
    const { trouble, againMs = againMsDefault, patienceMs = patienceMsDefault } = this.#options;
    const { signal } = this.#closing;
    const what = `publishing to ${this.name}`;
    try {
      await retry(() => this.#request(publishPath, body, 0), {
        ...{ clock: this.#clock, signal, patienceMs, mayPass, backoff: { kind: "fixed", delayMs: againMs } },
        failing: (error) => trouble?.failing(what, error, this.name),
      });
      trouble?.working(what, this.name);
    } catch (error) {
      throw signal.aborted || mayPass(error) ? unreachable(this.name, error) : error;
    }
  }

  async #request(path: string, body: string, waitMs: number, signal?: AbortSignal): Promise<unknown> {
    const { url, token } = this.#options;
    // No limit of connections: every consumer has a poll of its own.
    this.#client ??= JsonClient.open({ url: new URL(url), token, connections: null });
    return (await this.#client).call({ method: "POST", path, body, waitMs, signal });
  }
}

/** A request without records: joins, commits, renews the membership. */
const sign = { max: 0, waitMs: 0, leave: false, holding: undefined };

type Ask = (body: string, waitMs: number, signal?: AbortSignal) => Promise<unknown>;

class HttpConsumer implements BusConsumer {
  readonly ready: Promise<void>;
  readonly ended: Promise<void>;
  readonly #ask: Ask;
  readonly #subscription: Subscription;
  readonly #options: HttpBusOptions;
  readonly #clock: Clock;
  readonly #member = randomUUID();
  readonly #closing = new AbortController();
  readonly #latch = new Latch();
  readonly #what: string;
  #polling: AbortController | undefined;
  #topics: readonly string[];
  #paused = false;
  #done: number[] = [];

  constructor(ask: Ask, subscription: Subscription, options: HttpBusOptions, busName: string) {
    this.#ask = ask;
    this.#subscription = subscription;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#topics = subscription.topics;
    this.#what = `taking records of the group ${subscription.group} from ${busName}`;
    this.ready = this.#settle();
    this.ready.catch(() => {
      // Callers that await the promise receive the error.
    });
    this.ended = this.#run();
  }

  pause(): void {
    this.#paused = true;
    this.#polling?.abort();
  }

  resume(): void {
    this.#paused = false;
    this.#latch.open();
  }

  async add(topics: readonly string[]): Promise<void> {
    this.#topics = [...new Set([...this.#topics, ...topics])];
    await this.#settle();
    // A waiting poll waits only for the topics of its own request.
    this.#polling?.abort();
  }

  async close(): Promise<void> {
    this.#closing.abort(closedError());
    this.#polling?.abort();
    this.#latch.open();
    await this.ended;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    try {
      await this.ready;
      while (!signal.aborted) {
        const taken = this.#paused ? undefined : await this.#poll();
        if (taken !== undefined && taken.taken !== null) await this.#handle(taken.taken, taken.records);
        else if (this.#paused && !signal.aborted) {
          if (this.#done.length > 0) await this.#settle();
          if (this.#paused) await this.#latch.wait();
        }
      }
    } catch {
      // Only a permanent refusal arrives here; callers that await `ready` receive it.
    }
    // If the server is not reachable, it notices by itself that this member has left.
    await this.#take({ ...sign, leave: true, holding: [] }).catch(() => {});
  }

  /** Returns undefined when the poll was aborted or the server could not be reached; the poll is repeated after a delay. */
  async #poll(): Promise<TakeAnswer | undefined> {
    const { maxRecords = handledRecordsMax } = this.#subscription;
    this.#polling = new AbortController();
    const polling = this.#polling.signal;
    try {
      const max = Math.min(maxRecords, takeRecordsMax);
      const answer = await this.#take({ max, waitMs: takeWaitMsMax, leave: false, holding: [] }, polling);
      this.#options.trouble?.working(this.#what);
      return answer;
    } catch (error) {
      if (polling.aborted) return undefined;
      await this.#again(error);
      return undefined;
    } finally {
      this.#polling = undefined;
    }
  }

  async #handle(taken: number, records: TakeAnswer["records"]): Promise<void> {
    // A call of `handle` may take longer than the server waits for a heartbeat.
    const beat = this.#beating();
    try {
      await this.#subscription.handle(records);
      this.#done.push(taken);
    } catch (error) {
      await this.#again(error);
    } finally {
      beat();
    }
  }

  #beating(): () => void {
    let cancel: () => void;
    const arm = () => {
      cancel = this.#clock.at(this.#clock.now() + memberMs / 3, () => {
        // The next heartbeat or poll notices when the server is not reachable.
        void this.#take(sign).catch(() => {});
        arm();
      });
    };
    arm();
    return () => cancel();
  }

  /** Joins and commits; repeats that until it succeeds. */
  async #settle(): Promise<void> {
    const { trouble, againMs = againMsDefault } = this.#options;
    await retry(() => this.#take(sign), {
      ...{ clock: this.#clock, signal: this.#closing.signal, backoff: { kind: "fixed", delayMs: againMs } },
      // A server that refuses may have another configuration later; an invalid request stays invalid.
      mayPass: (error) => codeOf(error) !== "LONGSHORE_BAD_INPUT",
      failing: (error) => trouble?.failing(this.#what, error),
    });
    trouble?.working(this.#what);
  }

  async #again(error: unknown): Promise<void> {
    this.#options.trouble?.failing(this.#what, error);
    await pause(this.#clock, this.#options.againMs ?? againMsDefault, this.#closing.signal);
  }

  async #take(how: Pick<TakeRequest, "max" | "waitMs" | "leave" | "holding">, signal?: AbortSignal): Promise<TakeAnswer> {
    const { group, from } = this.#subscription;
    const commit = [...this.#done];
    const body = { group, member: this.#member, topics: this.#topics, from, ...how, commit };
    const answer = await this.#ask(JSON.stringify(body), how.waitMs, signal);
    this.#done = this.#done.filter((id) => !commit.includes(id));
    return readTakeAnswer(answer);
  }
}

/** An internal error of the server may be transient too: its next version, or another server, may handle the next try. */
function mayPass(error: unknown): boolean {
  return isTransient(error) || codeOf(toError(error)) === "LONGSHORE_INTERNAL";
}

function unreachable(name: string, cause: unknown): LongshoreError {
  return new LongshoreError("LONGSHORE_UNREACHABLE", `Records could not be published to ${name}: ${toError(cause).message}`, { cause });
}

function closedError(): LongshoreError {
  return new LongshoreError("LONGSHORE_CLOSED", "The bus has been closed.");
}
