// Collects the log of one execution and sends it in batches. Nothing here may delay the work or its report: adding never waits, and the
// backlog is bounded. The oldest lines are dropped first, because the end of a log explains a failure. An idle log has no timer.

import type { Clock } from "../core/clock.ts";
import type { OutputStream } from "../core/context.ts";
import { counted } from "../core/text.ts";
import type { LogBatch, LogEntry } from "./transport.ts";

/** The defaults. Lines appear almost at once, and a task with much output sends two requests a second and not hundreds. */
export const logBatchDefault: LogBatch = { everyMs: 500, bytesMax: 64 * 1024 };
/** The limit of unsent bytes of one execution: sixteen batches, so nothing of an ordinary log is lost during a restart of the peer. */
export const logBacklogBytesMax = 1024 * 1024;
/** How long the end of a task waits for its last lines. */
const closeMsMax = 5_000;
/** The longest delay between two tries of a failing push. */
const retryMsMax = 10_000;

export interface LogOptions {
  readonly clock: Clock;
  readonly batch: LogBatch;
  readonly send: (entries: readonly LogEntry[]) => Promise<void>;
  readonly failing: (what: string, error: unknown) => void;
  readonly working: (what: string) => void;
  /** Called once, at the end, with the number of lines that were never sent. */
  readonly dropped: (lines: number) => void;
}

interface Queued extends LogEntry {
  readonly bytes: number;
}

export class TaskLog {
  readonly #options: LogOptions;
  #queue: Queued[] = [];
  #queuedBytes = 0;
  #sequence = 0;
  #failures = 0;
  #droppedSinceMark = 0;
  #droppedLast: Queued | undefined;
  #droppedTotal = 0;
  #sending: Promise<boolean> | undefined;
  #disarm: (() => void) | undefined;
  #closed = false;

  constructor(options: LogOptions) {
    this.#options = options;
  }

  /** Adds one or more lines. A missing newline at the end is added. */
  add(text: string, stream: OutputStream): void {
    if (this.#closed) return;
    this.#append(text, stream);
    if (this.#sending !== undefined) return;
    if (this.#queuedBytes >= this.#options.batch.bytesMax && this.#failures === 0) void this.#flush();
    else this.#arm(this.#options.batch.everyMs);
  }

  /** Ends the log, with `last` on stderr. Sends what is left, for at most `closeMsMax` and until the first failure. Never rejects. */
  async close(giveUp: AbortSignal, last?: string): Promise<void> {
    if (this.#closed) return;
    if (last !== undefined) this.#append(last, "stderr");
    this.#closed = true;
    this.#disarm?.();
    await this.#sendRest(giveUp);
  }

  /**
   * Called after the report. When the report was `answered`, lines that could not be sent before are tried once more. Then reports the
   * number of lines that were never sent.
   */
  async end(answered: boolean, giveUp: AbortSignal): Promise<void> {
    if (answered && this.#sending === undefined) await this.#sendRest(giveUp);
    const lost = this.#droppedTotal + this.#queue.length;
    if (lost > 0) this.#options.dropped(lost);
  }

  async #sendRest(giveUp: AbortSignal): Promise<void> {
    if (this.#queue.length > 0 || this.#sending !== undefined) await this.#within(closeMsMax, giveUp, this.#sendAll());
  }

  #append(text: string, stream: OutputStream): void {
    const whole = text.endsWith("\n") ? text : `${text}\n`;
    // A piece with a quarter of the limit in characters fits even when each character takes four bytes.
    const pieceChars = Math.max(1, Math.floor(this.#options.batch.bytesMax / 4));
    for (let at = 0; at < whole.length; at += pieceChars) this.#push(whole.slice(at, at + pieceChars), stream);
    this.#dropOldest();
  }

  #push(text: string, stream: OutputStream): void {
    const bytes = Buffer.byteLength(text);
    this.#queue.push({ sequence: this.#sequence++, atMs: this.#options.clock.now(), stream, text, bytes });
    this.#queuedBytes += bytes;
  }

  #dropOldest(): void {
    while (this.#queuedBytes > logBacklogBytesMax) {
      const oldest = this.#queue.shift() as Queued;
      this.#queuedBytes -= oldest.bytes;
      this.#droppedSinceMark++;
      this.#droppedTotal++;
      this.#droppedLast = oldest;
    }
  }

  #arm(waitMs: number): void {
    if (this.#disarm !== undefined || this.#closed) return;
    this.#disarm = this.#options.clock.at(this.#options.clock.now() + waitMs, () => {
      this.#disarm = undefined;
      void this.#flush();
    });
  }

  async #flush(): Promise<void> {
    if (this.#sending !== undefined || this.#queue.length === 0) return;
    this.#disarm?.();
    this.#disarm = undefined;
    const sent = await this.#sendBatch();
    if (this.#closed || this.#queue.length === 0) return;
    if (!sent) this.#arm(Math.min(this.#options.batch.everyMs * 2 ** this.#failures, retryMsMax));
    else if (this.#queuedBytes >= this.#options.batch.bytesMax) void this.#flush();
    else this.#arm(this.#options.batch.everyMs);
  }

  async #sendAll(): Promise<void> {
    if (this.#sending !== undefined && !(await this.#sending)) return;
    while (this.#queue.length > 0) if (!(await this.#sendBatch())) return;
  }

  /** Returns true when the batch was sent. After a failure its entries are in the queue again. */
  #sendBatch(): Promise<boolean> {
    const batch = this.#takeBatch();
    this.#sending = this.#options.send(batch).then(
      () => {
        this.#failures = 0;
        this.#options.working("log push");
        return true;
      },
      (error: unknown) => {
        this.#failures++;
        this.#options.failing("log push", error);
        this.#queue.unshift(...batch);
        this.#queuedBytes += sum(batch);
        this.#dropOldest();
        return false;
      },
    );
    this.#sending = this.#sending.finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  #takeBatch(): Queued[] {
    const batch: Queued[] = [];
    let bytes = 0;
    if (this.#droppedSinceMark > 0) batch.push(this.#takeMark());
    let count = 0;
    for (const entry of this.#queue) {
      if (count > 0 && bytes + entry.bytes > this.#options.batch.bytesMax) break;
      bytes += entry.bytes;
      count++;
    }
    batch.push(...this.#queue.splice(0, count));
    this.#queuedBytes -= bytes;
    return batch;
  }

  /** A line that replaces the dropped lines. It has the number of the last dropped line, so numbers stay unique and in order. */
  #takeMark(): Queued {
    const last = this.#droppedLast as Queued;
    const text = `[longshore: dropped ${counted(this.#droppedSinceMark, "log line")} here, because the server did not accept them in time]\n`;
    this.#droppedSinceMark = 0;
    return { ...last, text, bytes: Buffer.byteLength(text) };
  }

  #within(ms: number, giveUp: AbortSignal, work: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        disarm();
        giveUp.removeEventListener("abort", done);
        resolve();
      };
      const disarm = this.#options.clock.at(this.#options.clock.now() + ms, done);
      giveUp.addEventListener("abort", done, { once: true });
      work.then(done, done);
    });
  }
}

function sum(entries: readonly Queued[]): number {
  return entries.reduce((total, entry) => total + entry.bytes, 0);
}
