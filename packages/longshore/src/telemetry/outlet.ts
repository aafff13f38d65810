// Wraps an exporter of OpenTelemetry. Reports when exports begin to fail and when they work again, counts items that were never sent, and
// retries over gRPC. OpenTelemetry's HTTP exporters retry by themselves.

import { type Clock, pause } from "../core/clock.ts";
import { type Episodes, stderrLogger } from "../runner/notices.ts";

/** OpenTelemetry's exporter interface, for spans and for log records. */
export interface Exporter<Item> {
  export(items: Item[], done: (result: ExportResult) => void): void;
  shutdown(): Promise<void>;
  forceFlush?(): Promise<void>;
}

export interface ExportResult {
  readonly code: number;
  readonly error?: Error;
}

export interface OutletOptions<Item> {
  /** The name of the items in messages: `spans`, `log records`. */
  readonly what: string;
  readonly exporter: Exporter<Item>;
  readonly clock: Clock;
  readonly episodes: Pick<Episodes, "failing" | "working">;
}

const succeeded = 0;
/** The delays between tries. A collector restarts in less time. After the last try the batch is dropped, because newer batches wait. */
const pausesMs = [1_000, 2_000, 5_000, 10_000];
/** How long the stop of a worker waits for its last records. */
const closeMsMax = 5_000;
const shownCharsMax = 200;
/** The gRPC codes after which the same request may succeed, by OTLP's specification. HTTP status codes are larger numbers. */
const laterCodes: ReadonlySet<unknown> = new Set([1, 4, 8, 10, 11, 14, 15]);

export class Outlet<Item> implements Exporter<Item> {
  readonly #options: OutletOptions<Item>;
  readonly #closing = new AbortController();
  readonly #sending = new Set<Promise<void>>();
  #added = 0;
  #sent = 0;
  #shutdown: Promise<void> | undefined;

  constructor(options: OutletOptions<Item>) {
    this.#options = options;
  }

  /** Counts an item that was handed to the batch. */
  added(): void {
    this.#added++;
  }

  export(items: Item[], done: (result: ExportResult) => void): void {
    const sending = this.#send(items).then((result) => {
      this.#sending.delete(sending);
      done(result);
    });
    this.#sending.add(sending);
  }

  async forceFlush(): Promise<void> {
    await this.#options.exporter.forceFlush?.();
  }

  /** Waits for exports that are in progress, including their retries. */
  shutdown(): Promise<void> {
    this.#shutdown ??= Promise.all(this.#sending).then(() => this.#options.exporter.shutdown());
    return this.#shutdown;
  }

  /** Sends the items that `flush` returns, up to a time limit, and reports how many were lost. Never rejects. */
  async close(flush: () => Promise<unknown>): Promise<void> {
    const { clock, what } = this.#options;
    const { signal } = this.#closing;
    const disarm = clock.at(clock.now() + closeMsMax, () => this.#closing.abort());
    const late = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    // A failed batch was already reported, and the other batches continue.
    const sent = flush()
      .catch(() => {})
      .then(() => this.shutdown())
      .catch(() => {});
    await Promise.race([sent, late]);
    disarm();
    const lost = this.#added - this.#sent;
    if (lost > 0) stderrLogger({ level: "warn", message: `Telemetry lost ${lost} ${what}, which could not be sent.` });
  }

  async #send(items: Item[]): Promise<ExportResult> {
    const { clock, episodes, exporter, what } = this.#options;
    const { signal } = this.#closing;
    for (let tries = 0; ; tries++) {
      const result = await new Promise<ExportResult>((resolve) => exporter.export(items, resolve));
      if (result.code === succeeded) {
        this.#sent += items.length;
        episodes.working(`the export of ${what}`);
        return result;
      }
      episodes.failing(`the export of ${what}`, reasonOf(result.error));
      const pauseMs = laterCodes.has((result.error as { code?: unknown } | undefined)?.code) ? pausesMs[tries] : undefined;
      if (pauseMs !== undefined) await pause(clock, pauseMs, signal);
      if (pauseMs === undefined || signal.aborted) return result;
    }
  }
}

/** OpenTelemetry's error has the HTTP status as its code and the beginning of the response as its data. */
function reasonOf(error: (Error & { readonly code?: unknown; readonly data?: unknown }) | undefined): Error {
  if (error === undefined) return new Error("the exporter gave no reason");
  const { message, code, data } = error;
  if (typeof data !== "string" || typeof code !== "number") return message === "" ? new Error(String(code ?? error.name)) : error;
  return new Error(`the collector answered ${code}${data === "" ? "" : `: ${data.slice(0, shownCharsMax)}`}`);
}
