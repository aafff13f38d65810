// Writes results in groups: stores them as artifacts, sends them as events, and finishes their input. The order never changes: an artifact
// is durable before its event is sent, and its input is finished after that. While one group is stored, the previous one is sent and
// further batches are processed.

import type { Backoff } from "../../../core/backoff.ts";
import type { Clock } from "../../../core/clock.ts";
import { isTransient, LongshoreError, toError } from "../../../core/errors.ts";
import { retry } from "../../../core/retry.ts";
import { type PartialArtifact, type PartRef, partsMax, type Stretch } from "../wire/artifacts/artifacts.ts";
import { reasons } from "./classify.ts";
import { RunFailed } from "./run-failure.ts";

/** The store for results. Each call may be repeated. The result false means that a later attempt has taken over. */
export interface ResultSink {
  keep(parts: readonly PartialArtifact[]): Promise<boolean>;
  tell(events: readonly Uint8Array[]): Promise<void>;
  finish(parts: readonly PartRef[]): Promise<boolean>;
}

export interface WriterOptions {
  readonly sink: ResultSink;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly failing: (what: string, error: unknown) => void;
  readonly working: (what: string) => void;
  /** Called when a later attempt has taken over. */
  readonly lost: () => void;
}

export interface Result {
  readonly part: PartialArtifact & { readonly json: Stretch };
  /** Null when the store needs no events. */
  readonly event: Uint8Array | null;
  readonly finishes: readonly PartRef[];
}

/**
 * The maximum size of a group is the limit of a call. A group grows only while the previous one is stored, so it is small under low load.
 */
const groupMax = partsMax;
/** Maximum bytes of a group: a reasonable size of a request body. */
const groupBytesMax = 2 * 1024 * 1024;
/** How many results are in flight before the handler waits: one group being sent, one being stored, and one being filled. */
const underWayMax = 3 * groupMax;
const underWayBytesMax = 3 * groupBytesMax;
/** After this many batches, sockets and timers get a turn: a handler may never wait. */
const turnEvery = 128;
const retrying: Backoff = { kind: "exponential", delayMs: 100, maxMs: 5_000, jitter: 0.2 };
/** When a store or broker is not reachable for longer than this, the run fails and the node is retried later. */
const patienceMs = 300_000;

export class BatchWriter {
  readonly #options: WriterOptions;
  #waiting: Result[] = [];
  #underWay = 0;
  #underWayBytes = 0;
  #pumping: Promise<void> | undefined;
  #telling: Promise<void> = Promise.resolve();
  #failure: Error | undefined;
  #wake: () => void = () => {};
  /** The number of written results. */
  count = 0;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Accepts a result. Returns a promise when the caller should wait before the next one. Throws the error of earlier results. */
  put(result: Result): Promise<void> | undefined {
    this.#check();
    this.count++;
    this.#waiting.push(result);
    this.#underWay++;
    this.#underWayBytes += sizeOf(result);
    this.#pumping ??= this.#pump();
    if (this.#full()) return this.#room();
    return this.count % turnEvery === 0 ? new Promise(setImmediate) : undefined;
  }

  /** Resolves when all results are stored and sent, and their input and `finishes` are finished. Throws when that fails. */
  async flush(finishes: readonly PartRef[] = []): Promise<void> {
    while (this.#pumping !== undefined && this.#failure === undefined) await this.#pumping;
    await this.#telling;
    this.#check();
    await this.#finish(finishes);
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure;
    this.#options.signal.throwIfAborted();
  }

  #full(): boolean {
    return this.#underWay >= underWayMax || this.#underWayBytes >= underWayBytesMax;
  }

  async #room(): Promise<void> {
    while (this.#full() && this.#failure === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#check();
  }

  async #pump(): Promise<void> {
    try {
      // Batches that end in the same turn share a group.
      await new Promise(setImmediate);
      while (this.#waiting.length > 0) {
        const group = this.#takeGroup();
        await this.#keep(group);
        await this.#telling;
        this.#telling = this.#tell(group);
      }
    } catch (error) {
      this.#fail(error);
    }
    this.#pumping = undefined;
  }

  #takeGroup(): Result[] {
    let bytes = 0;
    let size = 0;
    while (size < this.#waiting.length && size < groupMax && bytes < groupBytesMax) bytes += sizeOf(this.#waiting[size++] as Result);
    return this.#waiting.splice(0, size);
  }

  async #keep(group: readonly Result[]): Promise<void> {
    const parts = group.map(({ part }) => part);
    if (!(await this.#untilTaken("artifacts", () => this.#options.sink.keep(parts)))) this.#lose();
  }

  /** Never rejects. */
  async #tell(group: readonly Result[]): Promise<void> {
    try {
      const events = group.map(({ event }) => event).filter((event) => event !== null);
      if (events.length > 0) await this.#untilTaken("events", () => this.#options.sink.tell(events));
      await this.#finish(group.flatMap((result) => result.finishes));
      this.#underWay -= group.length;
      for (const result of group) this.#underWayBytes -= sizeOf(result);
      this.#wake();
    } catch (error) {
      this.#fail(error);
    }
  }

  async #finish(finishes: readonly PartRef[]): Promise<void> {
    for (let at = 0; at < finishes.length; at += partsMax) {
      const some = finishes.slice(at, at + partsMax);
      if (!(await this.#untilTaken("artifacts", () => this.#options.sink.finish(some)))) this.#lose();
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= toError(error);
    this.#wake();
  }

  #lose(): never {
    this.#options.lost();
    throw new LongshoreError("LONGSHORE_LEASE_LOST", "A later attempt of this node has taken over; what this one produces is not wanted.");
  }

  /** Repeats a call that failed because a peer was away. */
  async #untilTaken<Value>(what: string, call: () => Promise<Value>): Promise<Value> {
    const { clock, signal, failing, working } = this.#options;
    try {
      const answer = await retry(call, { clock, signal, backoff: retrying, patienceMs, failing: (error) => failing(what, error) });
      working(what);
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      if (isTransient(error)) throw new RunFailed(reasons.storeUnavailable, false, toError(error).message, toError(error));
      throw error;
    }
  }
}

/** The artifact is a part of the event's bytes, or all of them. */
function sizeOf({ part }: Result): number {
  return part.json.bytes.length;
}
