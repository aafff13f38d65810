// Sends reports that end at about the same time as one request, to servers that take them. At most `flyingMax` requests are on their way;
// reports that come meanwhile go together with the next one. So a busy worker sends few requests, and an idle one sends its report at once.

import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type Json, parseOrUndefined } from "../../../core/json/json.ts";
import { quoted, type Reply } from "../../../net/http/send.ts";
import { traceHeader, turnHeader } from "../wire/codes.ts";
import type { ClaimRequest } from "../wire/shapes.ts";

export interface BatchedReport {
  readonly leaseId: string;
  readonly verb: "complete" | "commands";
  /** JSON text, without the claim. */
  readonly body: string;
  readonly key?: string;
  readonly next?: ClaimRequest | undefined;
}

export interface ReportBatchOptions {
  /** How many reports the server takes in one request; 0 when it does not know such requests. */
  most(): number;
  /** Sends the text of a request with several reports. */
  send(text: string): Promise<Reply>;
  /** Sends one report as a request of its own. */
  sendAlone(report: BatchedReport, signal: AbortSignal): Promise<Reply>;
  /** The server does not know the request. */
  refused(): void;
}

interface Waiting {
  readonly report: BatchedReport;
  readonly signal: AbortSignal;
  resolve(reply: Reply): void;
  reject(error: unknown): void;
}

/**
 * With one request at a time, each report would wait for the commit of the one before it. With many requests, each would hold few reports.
 */
const flyingMax = 2;
/** Characters of one report, and of all in one request. A server takes 256 KiB, and a character of JSON may have three bytes. */
const reportCharsMax = 16_384;
const batchCharsMax = 65_536;

/** The request itself is refused: the server does not know it, or it is too large. */
const aloneStatuses: ReadonlySet<number> = new Set([400, 404, 413, 422]);

export class ReportBatch {
  readonly #options: ReportBatchOptions;
  readonly #queue: Waiting[] = [];
  #flying = 0;
  #scheduled = false;

  constructor(options: ReportBatchOptions) {
    this.#options = options;
  }

  /** `signal` ends only the wait for the reply. */
  send(report: BatchedReport, signal: AbortSignal): Promise<Reply> {
    if (this.#options.most() < 2 || report.body.length > reportCharsMax) return this.#options.sendAlone(report, signal);
    return new Promise((resolve, reject) => {
      const leave = () => reject(signal.reason);
      if (signal.aborted) return leave();
      signal.addEventListener("abort", leave, { once: true });
      const settled = () => signal.removeEventListener("abort", leave);
      this.#queue.push({
        ...{ report, signal },
        resolve: (reply) => {
          settled();
          resolve(reply);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      });
      this.#schedule();
    });
  }

  /** Sends in the next turn of the event loop, so that all reports of this turn go together. */
  #schedule(): void {
    if (this.#scheduled || this.#flying >= flyingMax || this.#queue.length === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      void this.#flush();
      this.#schedule();
    });
  }

  async #flush(): Promise<void> {
    const some = this.#take();
    if (some.length === 0) return;
    this.#flying++;
    try {
      await this.#sendAll(some);
    } catch (error) {
      for (const { reject } of some) reject(error);
    } finally {
      this.#flying--;
      this.#schedule();
    }
  }

  #take(): Waiting[] {
    const most = this.#options.most();
    let chars = 0;
    let count = 0;
    for (const { report } of this.#queue) {
      chars += report.body.length;
      if (count > 0 && (count >= most || chars > batchCharsMax)) break;
      count++;
    }
    return this.#queue.splice(0, count);
  }

  async #sendAll(some: readonly Waiting[]): Promise<void> {
    const [first] = some;
    if (first === undefined) return;
    if (some.length === 1) return first.resolve(await this.#options.sendAlone(first.report, first.signal));
    const reply = await this.#options.send(textOf(some.map(({ report }) => report)));
    if (reply.status === 404) this.#options.refused();
    if (aloneStatuses.has(reply.status)) {
      await Promise.all(some.map(({ report, signal, resolve, reject }) => this.#options.sendAlone(report, signal).then(resolve, reject)));
      return;
    }
    const replies = repliesIn(reply);
    for (const [at, { resolve, reject }] of some.entries()) {
      const own = replies[at];
      if (own === undefined) reject(new LongshoreError("LONGSHORE_UNREACHABLE", `The server answered reports with ${quoted(reply)}.`));
      else resolve(own);
    }
  }
}

/** The claim of all reports is that of the worker. */
function textOf(reports: readonly BatchedReport[]): string {
  const next = reports.find((report) => report.next !== undefined)?.next;
  return JSON.stringify({
    ...(next === undefined ? {} : { next }),
    reports: reports.map(({ leaseId, verb, body, key, next: own }) => ({
      ...{ lease: leaseId, verb, body, key },
      ...(own === undefined ? {} : { next: true }),
    })),
  });
}

function repliesIn({ status, text }: Reply): (Reply | undefined)[] {
  const value = status === 200 ? parseOrUndefined(text) : undefined;
  const replies = isObject(value) && Array.isArray(value.replies) ? (value.replies as Json[]) : [];
  return replies.map((reply) => {
    if (!isObject(reply) || typeof reply.status !== "number") return undefined;
    const { status: own, body, text: words, [traceHeader]: trace, turn } = reply as { [key: string]: Json };
    return {
      status: own as number,
      headers: { ...(typeof trace === "string" ? { [traceHeader]: trace } : {}), ...(turn === true ? { [turnHeader]: "taken" } : {}) },
      text: body === undefined ? (typeof words === "string" ? words : "") : JSON.stringify(body),
    };
  });
}
