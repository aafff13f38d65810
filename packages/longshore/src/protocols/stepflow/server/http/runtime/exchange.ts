// One POST to a worker and its answer: complete JSON, or a stream of events, as the worker chooses. It uses undici's dispatcher directly:
// most answers are one small body, and a stream object for each would cost more than the rest.

import type { Dispatcher } from "undici";
import type { ByteBudget } from "../../../../../core/byte-budget.ts";
import { JsonScan } from "../../../../../core/json/json-scan.ts";
import { payloadRequestBytes } from "../../../../../core/payload-size.ts";
import { EventParser } from "../../../../../net/http/read-events.ts";
import { Announcements } from "../../../../../net/http/send.ts";
import { instanceHeader } from "../../../wire/http/headers.ts";

export interface WorkerReply {
  readonly status: number;
  /** Empty for a stream. */
  readonly body: string;
  readonly streamed: boolean;
}

export interface Exchange {
  /** Called with the data of each event, and with the worker process that sent it, if it is named. Return false to pause the stream. */
  event?(data: string, instanceId: string | null): boolean;
  /** Called when the answer begins to arrive. `resume` continues a paused stream; `drop` discards the rest. */
  begun?(stream: { resume(): void; drop(): void }): void;
  readonly signal: AbortSignal;
}

/**
 * Larger responses and events are refused, because each is in memory as a whole. Reports of workers of other transports have the same
 * limit.
 */
const answerBytesMax = payloadRequestBytes;
/** The limit of a worker's report (`payloadValues`). An answer with fewer bytes than this cannot have more values, so it is not counted. */
const answerValuesMax = 131_072;

/** The answer exceeds the limit. A retry would return the same. */
export class TooLarge extends Error {
  override readonly name = "TooLarge";
}

/** All incomplete answers together exceed the budget. A later retry may succeed. */
export class NoRoom extends Error {
  override readonly name = "NoRoom";
}

/** Rejects with TooLarge or NoRoom, with the reason of the signal, or with a connection error. */
export function exchange(
  dispatcher: Dispatcher,
  options: Dispatcher.DispatchOptions,
  how: Exchange,
  receiving: ByteBudget,
): Promise<WorkerReply> {
  return new Promise((resolve, reject) => {
    if (how.signal.aborted) return reject(how.signal.reason);
    dispatcher.dispatch(options, new Handler(how, receiving, resolve, reject));
  });
}

class Handler implements Dispatcher.DispatchHandler {
  readonly #how: Exchange;
  readonly #resolve: (reply: WorkerReply) => void;
  readonly #reject: (error: unknown) => void;
  readonly #receiving: ByteBudget;
  readonly #announcements = new Announcements();
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  /** Bytes of the response, or of the incomplete event. The same number is reserved in the budget. */
  #bytes = 0;
  #status = 0;
  #events: EventParser | null = null;
  #instanceId: string | null = null;
  #dropped = false;

  constructor(how: Exchange, receiving: ByteBudget, resolve: (reply: WorkerReply) => void, reject: (error: unknown) => void) {
    this.#how = how;
    this.#receiving = receiving;
    this.#resolve = resolve;
    this.#reject = reject;
    how.signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The call was aborted while it waited for a connection.
    if (this.#how.signal.aborted) controller.abort(toAbort(this.#how.signal.reason));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Record<string, string | string[] | undefined>): void {
    if (status < 200) return this.#announcements.add(controller);
    this.#status = status;
    const instance = headers[instanceHeader];
    this.#instanceId = typeof instance === "string" && instance !== "" ? instance : null;
    if (String(headers["content-type"] ?? "").includes("text/event-stream") && this.#how.event !== undefined) {
      this.#events = new EventParser({ charsMax: answerBytesMax });
    }
    this.#how.begun?.({
      resume: () => controller.resume(),
      drop: () => {
        this.#dropped = true;
        controller.abort(new Error("The rest is not wanted."));
      },
    });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    try {
      this.#hold(chunk.length);
      if (this.#events !== null) return this.#takeEvents(controller, this.#events.push(chunk));
      if (this.#bytes > answerBytesMax) throw new RangeError(`It is larger than ${answerBytesMax} bytes.`);
      this.#chunks.push(chunk);
    } catch (error) {
      controller.abort(error instanceof RangeError ? new TooLarge(error.message) : (error as Error));
    }
  }

  onResponseEnd(): void {
    this.#finish();
    const [first, second] = this.#chunks;
    const bytes = first === undefined || second === undefined ? first : Buffer.concat(this.#chunks);
    if (bytes !== undefined && hasManyValues(bytes)) return this.#reject(new TooLarge(manyValuesText));
    this.#resolve({ status: this.#status, body: bytes?.toString() ?? "", streamed: this.#events !== null });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#finish();
    if (this.#dropped) this.#resolve({ status: this.#status, body: "", streamed: true });
    else this.#reject(this.#how.signal.aborted ? this.#how.signal.reason : error);
  }

  #takeEvents(controller: Dispatcher.DispatchController, events: readonly { data: string }[]): void {
    let more = true;
    if (events.length > 0) this.#release();
    for (const { data } of events)
      if (data.length > answerValuesMax && hasManyValues(Buffer.from(data))) throw new RangeError(manyValuesText);
    for (const { data } of events) more = (this.#how.event?.(data, this.#instanceId) ?? true) && more;
    if (!more) controller.pause();
  }

  #hold(bytes: number): void {
    if (!this.#receiving.take(bytes))
      throw new NoRoom(`The worker has sent ${this.#receiving.max} bytes of its answers that are not whole yet.`);
    this.#bytes += bytes;
  }

  #release(): void {
    this.#receiving.give(this.#bytes);
    this.#bytes = 0;
  }

  #finish(): void {
    this.#release();
    this.#how.signal.removeEventListener("abort", this.#onAbort);
  }

  readonly #onAbort = (): void => {
    const { reason } = this.#how.signal;
    this.#controller?.abort(toAbort(reason));
    this.#reject(reason);
  };
}

const manyValuesText = `It has more than ${answerValuesMax} values.`;

function hasManyValues(json: Buffer): boolean {
  if (json.length <= answerValuesMax) return false;
  const scan = new JsonScan();
  scan.push(json);
  return scan.values > answerValuesMax;
}

function toAbort(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
