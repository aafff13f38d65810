// Connections to one server, and one request with its whole answer on undici's innermost interface. Its `request` puts a stream around
// every answer, which takes a worker longer than all the rest of a claim; the answers to workers are small and read whole.

import type { Dispatcher, Pool } from "undici";
import { ReceivedBody } from "./received-body.ts";

export interface Reply {
  readonly status: number;
  readonly headers: { readonly [name: string]: string | string[] | undefined };
  readonly text: string;
}

/** Longer than any healthy answer takes, shorter than the shortest useful lease. */
export const answerMsMax = 10_000;
const connectMsMax = 5_000;
/** A claim with the outputs of all dependencies, a page of parts, a hand-out of records with every byte escaped: each is below it. */
const answerBytesMax = 64 * 1024 * 1024;
/** An answer that says whether something was taken: every running task may wait for one at the same time. */
export const shortAnswerBytesMax = 64 * 1024;

/**
 * `connections` is how many requests may be under way at once; null is any number. The HTTP library is loaded only now, so that importing
 * a worker file stays cheap.
 */
export async function openPool(url: URL, connections: number | null): Promise<Pool> {
  const undici = await import("undici");
  return new undici.Pool(url.origin, {
    connections,
    // A pipelined answer would wait behind a long poll.
    pipelining: 1,
    connect: { timeout: connectMsMax },
    maxResponseSize: answerBytesMax,
  });
}

/** Rejects when there is no whole answer: no server is there, the time has passed, it is larger than `bytesMax`, or `signal` aborts. */
export function send(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  signal: AbortSignal | undefined,
  bytesMax = answerBytesMax,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const body = new ReceivedBody(bytesMax);
    let status = 0;
    let headers: Reply["headers"] = {};
    let started: Dispatcher.DispatchController | undefined;
    const abort = () => started?.abort(reasonOf(signal));
    const over = () => signal?.removeEventListener("abort", abort);
    signal?.addEventListener("abort", abort, { once: true });
    dispatcher.dispatch(request, {
      onRequestStart(controller) {
        started = controller;
        // It may have waited for a connection since the abort.
        if (signal?.aborted) abort();
      },
      onResponseStart(_controller, statusCode, received) {
        status = statusCode;
        headers = received;
      },
      onResponseData(controller, chunk) {
        const refusal = body.push(chunk);
        if (refusal !== undefined) controller.abort(new Error(refusal));
      },
      onResponseEnd() {
        over();
        resolve({ status, headers, text: body.bytes().toString("utf8") });
      },
      onResponseError(_controller, error) {
        over();
        reject(error);
      },
    });
  });
}

function reasonOf(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error(String(reason));
}
