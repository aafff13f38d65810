// A bus that a Longshore server keeps, for programs elsewhere: records are published by a request, and taken by a long poll; the next
// poll acknowledges them.

import { randomUUID } from "node:crypto";
import type { Pool } from "undici";
import { type Clock, pause, systemClock } from "../core/clock.ts";
import { codeOf, type ErrorCode, errorCodes, isTransient, LongshoreError, toError } from "../core/errors.ts";
import { isObject, parseOrUndefined } from "../core/json/json.ts";
import { withoutEndSlashes } from "../core/text.ts";
import { answerMsMax, openPool, type Reply, send } from "../net/http/send.ts";
import { againMsDefault, type Bus, type BusConsumer, type BusOptions, handledRecordsMax, type Outgoing, type Subscription } from "./bus.ts";
import { checkOutgoing, checkTopic } from "./check.ts";
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
  /** Where the server has its bus; what is done with it has paths below. */
  readonly url: string | URL;
  readonly token?: string;
  /** How long `publish` keeps trying before it rejects. */
  readonly patienceMs?: number;
}

/** A restart of the server takes less. */
const patienceMsDefault = 30_000;

export function openHttpBus(options: HttpBusOptions): Bus {
  return new HttpBus(options);
}

class HttpBus implements Bus {
  readonly name: string;
  readonly #options: HttpBusOptions;
  readonly #clock: Clock;
  readonly #base: string;
  readonly #consumers = new Set<HttpConsumer>();
  readonly #batcher: PublishBatcher;
  readonly #closing = new AbortController();
  #pool: Promise<Pool> | undefined;

  constructor(options: HttpBusOptions) {
    const url = new URL(options.url);
    this.name = `the bus at ${url.origin}`;
    this.#base = withoutEndSlashes(url.pathname);
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
    const ask = (body: string, answerMs: number, signal?: AbortSignal) => this.#request(takePath, body, answerMs, signal);
    const consumer = new HttpConsumer(ask, subscription, this.#options, this.name);
    this.#consumers.add(consumer);
    void consumer.ended.then(() => this.#consumers.delete(consumer));
    return consumer;
  }

  async ensure(topics: readonly string[]): Promise<void> {
    // The server makes a topic when it is first written or read.
    for (const topic of topics) checkTopic(topic);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#batcher.idle();
    await Promise.all([...this.#consumers].map((consumer) => consumer.close()));
    const pool = await this.#pool;
    this.#pool = undefined;
    await pool?.destroy();
  }

  async #publish(records: readonly Outgoing[]): Promise<void> {
    const body = publishBody(records);
    const { trouble, againMs = againMsDefault, patienceMs = patienceMsDefault } = this.#options;
    const what = `publishing to ${this.name}`;
    const until = this.#clock.now() + patienceMs;
    for (;;) {
      try {
        await this.#request(publishPath, body, answerMsMax);
        trouble?.working(what);
        return;
      } catch (error) {
        if (!mayPass(error)) throw error;
        trouble?.failing(what, error);
        if (this.#clock.now() + againMs > until || this.#closing.signal.aborted) throw unreachable(this.name, error);
        await pause(this.#clock, againMs, this.#closing.signal);
      }
    }
  }

  async #request(path: string, body: string, answerMs: number, signal?: AbortSignal): Promise<string> {
    // Any number: every consumer has a poll of its own.
    this.#pool ??= openPool(new URL(this.#options.url), null);
    const { token } = this.#options;
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    const request = { method: "POST" as const, path: this.#base + path, headers, body, headersTimeout: answerMs, bodyTimeout: answerMs };
    const reply = await send(await this.#pool, request, signal);
    if (reply.status === 200) return reply.text;
    throw refusedBy(this.name, reply);
  }
}

/** Requests nothing: joins, commits, renews the membership. */
const sign = { max: 0, waitMs: 0, leave: false, holding: undefined };

type Ask = (body: string, answerMs: number, signal?: AbortSignal) => Promise<string>;

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
      // Reported to callers that wait for it.
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
    // A poll that waits does so for the topics of its request.
    this.#polling?.abort();
  }

  async close(): Promise<void> {
    this.#closing.abort();
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
      // Only a permanent refusal comes here; it was reported to callers that wait for `ready`.
    }
    // Should the server be away, it finds out by itself that this member is gone.
    await this.#take({ ...sign, leave: true, holding: [] }).catch(() => {});
  }

  /** Undefined when it was cut short, or when the server could not be reached, which is tried again after a pause. */
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
    // A call may take longer than the server waits for a heartbeat.
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
        // The next beat, or the next poll, finds out whether the server is there.
        void this.#take(sign).catch(() => {});
        arm();
      });
    };
    arm();
    return () => cancel();
  }

  /** Joins, and commits what is done, until that has worked. */
  async #settle(): Promise<void> {
    for (;;) {
      try {
        await this.#take(sign);
        this.#options.trouble?.working(this.#what);
        return;
      } catch (error) {
        if (this.#closing.signal.aborted) throw closedError();
        // A server that refuses may have another configuration by the next time; a mistake of ours stays one.
        if (codeOf(toError(error)) === "LONGSHORE_BAD_INPUT") throw error;
        await this.#again(error);
      }
    }
  }

  async #again(error: unknown): Promise<void> {
    this.#options.trouble?.failing(this.#what, error);
    await pause(this.#clock, this.#options.againMs ?? againMsDefault, this.#closing.signal);
  }

  async #take(how: Pick<TakeRequest, "max" | "waitMs" | "leave" | "holding">, signal?: AbortSignal): Promise<TakeAnswer> {
    const { group, from } = this.#subscription;
    const commit = [...this.#done];
    const body = { group, member: this.#member, topics: this.#topics, from, ...how, commit };
    const text = await this.#ask(JSON.stringify(body), answerMsMax + how.waitMs, signal);
    this.#done = this.#done.filter((id) => !commit.includes(id));
    return readTakeAnswer(text);
  }
}

/** Whether another try may help: no server was there, or the server was busy or closing. */
function mayPass(error: unknown): boolean {
  return isTransient(error) || codeOf(toError(error)) === "LONGSHORE_INTERNAL";
}

function refusedBy(name: string, reply: Reply): LongshoreError {
  // From what is no Longshore server, only the status is used.
  const told = parseOrUndefined(reply.text);
  const error = isObject(told) && isObject(told.error) ? told.error : {};
  const { message = `answered ${reply.status}`, field } = error as { message?: string; field?: string };
  const code = reply.status >= 500 || reply.status === 429 ? "LONGSHORE_UNREACHABLE" : ourCode(error.code);
  return new LongshoreError(code, `${name}: ${message}`, field === undefined ? {} : { detail: { field } });
}

function ourCode(code: unknown): ErrorCode {
  return errorCodes.find((one) => one === code) ?? "LONGSHORE_BAD_CONFIG";
}

function unreachable(name: string, cause: unknown): LongshoreError {
  return new LongshoreError("LONGSHORE_UNREACHABLE", `Records could not be published to ${name}: ${toError(cause).message}`, { cause });
}

function closedError(): LongshoreError {
  return new LongshoreError("LONGSHORE_CLOSED", "The bus has been closed.");
}
