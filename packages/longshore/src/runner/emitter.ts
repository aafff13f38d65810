// Sends the parts that a handler emits, in order and in groups: while one group is being sent, the next is collected. A part that failed is
// sent again until the work is stopped. Its uid makes that harmless.

import type { Backoff } from "../core/backoff.ts";
import type { Clock } from "../core/clock.ts";
import type { StepPart } from "../core/context.ts";
import { isRefused, isTerminal, LongshoreError, toError } from "../core/errors.ts";
import { toJson } from "../core/json/to-json.ts";
import { isName } from "../core/names.ts";
import { retry } from "../core/retry.ts";
import { shown } from "../core/text.ts";

export interface EmitterOptions {
  readonly clock: Clock;
  send(parts: readonly StepPart[]): Promise<void>;
  /** The handler's signal; ends the delays. */
  signal(): AbortSignal;
  /** Stops the whole handler: the lease is lost, or the work is not wanted any more. */
  stop(reason: LongshoreError): void;
  readonly failing: (what: string, error: unknown) => void;
  readonly working: (what: string) => void;
}

/** The limits of one `send`: every store and protocol accepts this much at once. */
const groupParts = 500;
const groupBytes = 4 * 1_024 * 1_024;
/** The limits of parts that wait to be sent. A handler that emits more without waiting would fill the memory. */
const waitingPartsMax = 10_000;
const waitingBytesMax = 64 * 1_024 * 1_024;
/** The delays before a group is sent again. */
const retrying: Backoff = { kind: "exponential", delayMs: 100, maxMs: 5_000 };
/** How long a group is retried when no lease ends before. */
const patienceMs = 300_000;
const uidCharsMax = 512;

interface Waiting {
  readonly part: StepPart;
  readonly bytes: number;
  resolve(): void;
  reject(error: Error): void;
}

export class Emitter {
  readonly #options: EmitterOptions;
  readonly #waiting: Waiting[] = [];
  #bytes = 0;
  #sending: Promise<void> | undefined;
  #failure: Error | undefined;
  #closed = false;

  constructor(options: EmitterOptions) {
    this.#options = options;
  }

  /** Resolves when the part is durable. */
  add(uid: string, value: unknown): Promise<void> {
    const sent = new Promise<void>((resolve, reject) => this.#enqueue(uid, value, { resolve, reject }));
    // The failure fails the task even if the handler does not await the promise.
    sent.catch((error: unknown) => {
      this.#failure ??= toError(error);
    });
    return sent;
  }

  /** Resolves when all emitted parts are durable; rejects when a part was lost, even if the handler did not await it. */
  async flush(): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** The task has ended: further parts of its handler are dropped. */
  close(): void {
    this.#closed = true;
  }

  /** Throws when the part is invalid. */
  #enqueue(uid: string, value: unknown, settle: Pick<Waiting, "resolve" | "reject">): void {
    const refused = this.#refusal(uid);
    if (refused !== undefined) throw refused;
    const json = toJson(value);
    const bytes = JSON.stringify(json).length;
    this.#waiting.push({ part: { uid, value: json }, bytes, ...settle });
    this.#bytes += bytes;
    this.#sending ??= this.#sendAll();
  }

  #refusal(uid: string): LongshoreError | undefined {
    if (this.#closed) return new LongshoreError("LONGSHORE_CLOSED", "The task is over, so it can emit no more parts.");
    if (typeof uid !== "string" || uid.length === 0 || uid.length > uidCharsMax || !isName(uid)) {
      const expected = `a text of 1 to ${uidCharsMax} characters of valid Unicode without NUL`;
      return new LongshoreError("LONGSHORE_BAD_INPUT", `The uid of a part is ${shown(uid)}, expected ${expected}.`, {
        detail: { field: "uid", expected },
      });
    }
    if (this.#waiting.length < waitingPartsMax && this.#bytes < waitingBytesMax) return undefined;
    return new LongshoreError("LONGSHORE_LIMIT", `${this.#waiting.length} parts wait to be sent, which is the limit: await ctx.emit().`);
  }

  async #sendAll(): Promise<void> {
    // Parts that are emitted in the same tick are sent together.
    await undefined;
    while (this.#waiting.length > 0) {
      const group = this.#take();
      try {
        await this.#send(group.map(({ part }) => part));
        for (const { resolve } of group) resolve();
      } catch (thrown) {
        for (const { reject } of group) reject(toError(thrown));
      }
    }
    // This is set in the same tick in which the queue was empty, so the next part starts a new loop.
    this.#sending = undefined;
  }

  #take(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const waiting of this.#waiting) {
      if (count === groupParts || (count > 0 && bytes + waiting.bytes > groupBytes)) break;
      bytes += waiting.bytes;
      count++;
    }
    this.#bytes -= bytes;
    return this.#waiting.splice(0, count);
  }

  async #send(parts: readonly StepPart[]): Promise<void> {
    const { clock, send, signal, stop, failing, working } = this.#options;
    try {
      await retry(() => send(parts), {
        ...{ clock, signal: signal(), backoff: retrying, patienceMs },
        mayPass: (error) => !isRefused(error) && !isTerminal(error) && !endsWork(error),
        failing: (error) => failing("parts", error),
      });
      working("parts");
    } catch (error) {
      if (endsWork(error)) stop(error);
      throw error;
    }
  }
}

/** The server has given the task to another worker, or does not want its result. */
function endsWork(error: unknown): error is LongshoreError {
  return error instanceof LongshoreError && (error.code === "LONGSHORE_LEASE_LOST" || error.code === "LONGSHORE_CANCELLED");
}
