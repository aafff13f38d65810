// Collects published records into few requests, without waiting. Records of one turn of the event loop are sent together. Records that
// arrive during a request are sent with the next one, so requests grow under load.

import type { Outgoing } from "../core/bus/bus.ts";
import { bytesOf } from "../core/bus/check.ts";
import { LongshoreError } from "../core/errors.ts";

export interface PublishBatcherOptions {
  /**
   * Sends one request. It is called again only after the promise has settled. The records come from this many `calls` of `add`, which all
   * reject when `send` rejects. One error is an exception: after LONGSHORE_LIMIT, the records of each call are sent again in a separate
   * request.
   */
  send(records: readonly Outgoing[], calls: number): Promise<void>;
  readonly bytesMax: number;
  readonly recordsMax: number;
}

interface Call {
  readonly records: readonly Outgoing[];
  resolve(): void;
  reject(error: unknown): void;
  /** Records that are not sent yet. */
  left: number;
}

/** While more bytes than this wait to be sent, further calls of `add` wait. A fast broker accepts this many bytes in about a second. */
const waitingBytesMax = 64 * 1024 * 1024;

/** Bytes that are counted for each record in addition to its key and value. */
const frameBytes = 32;

function sizeOf(record: Outgoing): number {
  return bytesOf(record) + frameBytes;
}

export class PublishBatcher {
  readonly #options: PublishBatcherOptions;
  #calls: Call[] = [];
  #waitingBytes = 0;
  #room: (() => void)[] = [];
  #sending: Promise<void> | null = null;

  constructor(options: PublishBatcherOptions) {
    this.#options = options;
  }

  async add(records: readonly Outgoing[]): Promise<void> {
    if (records.length === 0) return;
    while (this.#waitingBytes > waitingBytesMax) await new Promise<void>((resolve) => this.#room.push(resolve));
    for (const record of records) this.#waitingBytes += sizeOf(record);
    const done = new Promise<void>((resolve, reject) => this.#calls.push({ records, resolve, reject, left: records.length }));
    this.#sending ??= this.#run();
    return done;
  }

  /** Resolves when everything that was added so far is sent or refused. */
  async idle(): Promise<void> {
    while (this.#sending !== null) await this.#sending;
  }

  async #run(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#calls.length > 0) {
      const { records, calls, bytes } = this.#next();
      await this.#deliver(records, calls);
      this.#waitingBytes -= bytes;
      for (const proceed of this.#room.splice(0)) proceed();
    }
    this.#sending = null;
  }

  async #deliver(records: readonly Outgoing[], calls: ReadonlyMap<Call, number>): Promise<void> {
    try {
      await this.#options.send(records, calls.size);
      for (const [call, count] of calls) {
        call.left -= count;
        if (call.left === 0) call.resolve();
      }
    } catch (error) {
      if (calls.size > 1 && isTooLarge(error)) return this.#oneByOne(records, calls);
      for (const [call, count] of calls) this.#fail(call, count, error);
    }
  }

  /** A record of one call is too large for its topic: the other calls must not fail. */
  async #oneByOne(records: readonly Outgoing[], calls: ReadonlyMap<Call, number>): Promise<void> {
    let at = 0;
    for (const [call, count] of calls) {
      await this.#deliver(records.slice(at, at + count), new Map([[call, count]]));
      at += count;
    }
  }

  #fail(call: Call, count: number, error: unknown): void {
    call.reject(error);
    // When a part of a call failed, the rest is not sent: its caller repeats all of it.
    for (const record of call.records.slice(call.records.length - call.left + count)) this.#waitingBytes -= sizeOf(record);
    this.#calls = this.#calls.filter((one) => one !== call);
  }

  /** The records of the next request, from the calls in their order. */
  #next(): { records: Outgoing[]; calls: Map<Call, number>; bytes: number } {
    const { bytesMax, recordsMax } = this.#options;
    const records: Outgoing[] = [];
    const calls = new Map<Call, number>();
    let bytes = 0;
    while (this.#calls.length > 0) {
      const call = this.#calls[0] as Call;
      for (let at = call.records.length - call.left; at < call.records.length; at++) {
        const record = call.records[at] as Outgoing;
        const size = sizeOf(record);
        if (records.length > 0 && (bytes + size > bytesMax || records.length >= recordsMax)) return { records, calls, bytes };
        bytes += size;
        records.push(record);
        calls.set(call, (calls.get(call) ?? 0) + 1);
      }
      this.#calls.shift();
    }
    return { records, calls, bytes };
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof LongshoreError && error.code === "LONGSHORE_LIMIT";
}
