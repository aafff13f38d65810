// Results on their way out: stored as artifacts, sent as events, and their input ticked off, in groups. While one group is being stored the
// one before it is being sent and further batches are worked on, so the handler does not wait until much is in flight. The order never
// changes: an artifact is durable before its event leaves, and its input is ticked off after that.

import type { Backoff } from "../../../core/backoff.ts";
import type { Clock } from "../../../core/clock.ts";
import { isTransient, LongshoreError, toError } from "../../../core/errors.ts";
import { retry } from "../../../core/retry.ts";
import { type PartialArtifact, type PartRef, partsMax, type Stretch } from "../wire/artifacts/artifacts.ts";
import { reasons } from "./classify.ts";
import { RunFailed } from "./run-failure.ts";

/** Where results are written. Each call may be repeated; those with a boolean result return false when a later attempt has taken over. */
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
  /** A later attempt has taken over. */
  readonly lost: () => void;
}

export interface Result {
  readonly part: PartialArtifact & { readonly json: Stretch };
  /** Null where keeping the artifact is telling it. */
  readonly event: Uint8Array | null;
  readonly finishes: readonly PartRef[];
}

/** A group is as large as a call may be: it grows only while the one before it is kept, so it is small where there is little to do. */
const groupMax = partsMax;
/** A request body of a reasonable size, whatever the batches are. */
const groupBytesMax = 2 * 1024 * 1024;
/** What may be in flight before the handler waits: the group being sent, the one being stored, and one that fills. */
const underWayMax = 3 * groupMax;
const underWayBytesMax = 3 * groupBytesMax;
/** After so many batches sockets and timers have their turn: a handler that waits for nothing would keep even what is being sent from leaving. */
const turnEvery = 128;
const retrying: Backoff = { kind: "exponential", delayMs: 100, maxMs: 5_000, jitter: 0.2 };
/** When a store or broker is away for longer, the node is tried again later, perhaps elsewhere. */
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
  /** How many were written. */
  count = 0;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Takes a result in. A promise when the caller should wait before it makes more. Throws the error of earlier ones. */
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

  /** Resolves when everything is stored, sent and ticked off, and `finishes` behind it; throws when something could not be. */
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
      // Batches that are done in one turn share a group.
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

  /** Repeats what failed because a peer was away. */
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

/** Its artifact is part of its event, or all there is. */
function sizeOf({ part }: Result): number {
  return part.json.bytes.length;
}
