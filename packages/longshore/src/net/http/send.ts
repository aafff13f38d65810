// Connections to one server, and one request with its complete response, on undici's low-level interface. undici's `request` wraps every
// response in a stream, which costs a worker more than the rest of a claim. Responses to workers are small and read as a whole.

import type { Dispatcher, Pool } from "undici";
import { LongshoreError } from "../../core/errors.ts";
import { ReceivedBody } from "./received-body.ts";

export interface Reply {
  readonly status: number;
  /** The reason phrase of the status line, if the server sent one. */
  readonly reason?: string;
  readonly headers: { readonly [name: string]: string | string[] | undefined };
  readonly text: string;
}

/** An error text quotes this much of an unexpected response. */
export const quoteCharsMax = 200;

/** A healthy response takes less time, and the shortest useful lease lasts longer. */
export const answerMsMax = 10_000;
const connectMsMax = 5_000;
/**
 * The largest responses are smaller: a claim with the outputs of all dependencies, a page of parts, a delivery of records with every byte
 * escaped.
 */
const answerBytesMax = 64 * 1024 * 1024;
/** The limit of short responses, such as acknowledgements: every running task may wait for one at the same time. */
export const shortAnswerBytesMax = 64 * 1024;

/**
 * A large response may take a long time, but its rate has a minimum. Otherwise a server that sends a byte now and then would occupy a slot
 * for days.
 */
const slowMsMax = answerMsMax;
const bytesPerSecondMin = 1_024;

/**
 * `connections` limits the concurrent requests; null means no limit. Imports the HTTP library only here, so that importing a worker file
 * stays cheap.
 */
export async function openPool(origin: string, connections: number | null, options: PoolOptions = {}): Promise<Pool> {
  const { connectMs = connectMsMax, bytesMax = answerBytesMax, probeMs, idleMs } = options;
  const undici = await import("undici");
  return new undici.Pool(origin, {
    connections,
    // A pipelined response would wait behind a long poll.
    pipelining: 1,
    connect: { timeout: connectMs, ...(probeMs === undefined ? {} : { keepAliveInitialDelay: probeMs }) },
    ...(idleMs === undefined ? {} : { keepAliveTimeout: idleMs, keepAliveMaxTimeout: idleMs }),
    // In undici, -1 means no limit.
    maxResponseSize: bytesMax ?? -1,
  });
}

export interface PoolOptions {
  readonly connectMs?: number;
  /** Null means no limit: for responses that are read as a stream. */
  readonly bytesMax?: number | null;
  /** The system sends TCP keep-alive probes to a silent peer after this time. */
  readonly probeMs?: number;
  /** An unused connection is closed after this time. */
  readonly idleMs?: number;
}

/** A server announces a response once or twice. Each announcement begins the time for the headers again. */
const announcementsMax = 8;

/** Counts the statuses below 200 of one response, which only announce it, and ends a response that is announced without an end. */
export class Announcements {
  #count = 0;

  add(controller: Dispatcher.DispatchController): void {
    if (++this.#count <= announcementsMax) return;
    controller.abort(
      new LongshoreError("LONGSHORE_UNREACHABLE", `The server announced a response ${announcementsMax} times and sent none.`),
    );
  }
}

export interface SendLimits {
  readonly bytesMax?: number | undefined;
  /** After this time, a response that arrives with less than 1 KiB a second is refused. */
  readonly slowMs?: number | undefined;
  /** Milliseconds of a monotonic clock. */
  readonly steady?: () => number;
}

/**
 * Rejects without a complete response: the server is not reachable, the time has passed, `signal` aborts, or the response is too slow or
 * too large (LONGSHORE_LIMIT).
 */
export function send(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  signal: AbortSignal | undefined,
  { bytesMax = answerBytesMax, slowMs = slowMsMax, steady = () => performance.now() }: SendLimits = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(reasonOf(signal));
    dispatcher.dispatch(request, new Exchange({ resolve, reject, signal, bytesMax, slowMs, steady }));
  });
}

interface ExchangeOptions {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: Error) => void;
  readonly signal: AbortSignal | undefined;
  readonly bytesMax: number;
  readonly slowMs: number;
  readonly steady: () => number;
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly #options: ExchangeOptions;
  readonly #body: ReceivedBody;
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #reason = "";
  #beganMs = 0;
  #bytes = 0;
  readonly #announcements = new Announcements();
  #headers: Reply["headers"] = {};

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#body = new ReceivedBody(options.bytesMax);
    options.signal?.addEventListener("abort", this.#onAbort);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The signal may have aborted while the request waited for a connection.
    const { signal } = this.#options;
    if (signal?.aborted) controller.abort(reasonOf(signal));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Reply["headers"], reason = ""): void {
    if (status < 200) return this.#announcements.add(controller);
    this.#status = status;
    this.#reason = reason;
    this.#headers = headers;
    this.#beganMs = this.#options.steady();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const refusal = this.#body.push(chunk);
    if (refusal !== undefined) return controller.abort(new LongshoreError("LONGSHORE_LIMIT", refusal));
    const slowness = this.#slowness(chunk.length);
    if (slowness !== undefined) controller.abort(new LongshoreError("LONGSHORE_UNREACHABLE", slowness));
  }

  onResponseEnd(): void {
    this.#over();
    this.#options.resolve({
      status: this.#status,
      reason: this.#reason,
      headers: this.#headers,
      text: this.#body.bytes().toString("utf8"),
    });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#over();
    // undici reports a status below 100 as a failed assertion, whose text is a line of its code.
    const isImpossible = "code" in error && error.code === "ERR_ASSERTION";
    this.#options.reject(isImpossible ? new LongshoreError("LONGSHORE_UNREACHABLE", "The response is not HTTP.", { cause: error }) : error);
  }

  /** Checked when a piece arrives: a pause between two pieces has a limit of its own. */
  #slowness(bytes: number): string | undefined {
    this.#bytes += bytes;
    const tookMs = this.#options.steady() - this.#beganMs;
    if (tookMs <= this.#options.slowMs || this.#bytes * 1_000 >= tookMs * bytesPerSecondMin) return undefined;
    return `The answer came with fewer than ${bytesPerSecondMin} bytes a second.`;
  }

  #over(): void {
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
  }

  readonly #onAbort = (): void => {
    const error = reasonOf(this.#options.signal as AbortSignal);
    // A request that still waits for a connection has no controller yet; it is aborted when it gets one.
    this.#controller?.abort(error);
    this.#options.reject(error);
  };
}

function reasonOf(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error("The request was given up.");
}

/** `status 404: not found`, or the beginning of the response. */
export function quoted({ status, text }: Pick<Reply, "status" | "text">): string {
  return text === "" ? `status ${status}` : `status ${status}: ${text.slice(0, quoteCharsMax)}`;
}

/** Transient statuses: the server is overloaded, closing, or behind a proxy that cannot reach it. */
const transientStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504]);

export function isTransientStatus(status: number): boolean {
  return transientStatuses.has(status);
}
