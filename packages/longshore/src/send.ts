// One request with its whole answer, on undici's innermost interface. Its `request` puts a stream around every answer, which takes a
// worker longer than all the rest of a claim; the answers to workers are small and read whole.

import type { Dispatcher } from "undici";

export interface Reply {
  readonly status: number;
  readonly headers: { readonly [name: string]: string | string[] | undefined };
  readonly text: string;
}

/** Rejects when there is no whole answer: nobody is there, the time is over, or `signal` aborts. */
export function send(dispatcher: Dispatcher, request: Dispatcher.DispatchOptions, signal: AbortSignal | undefined): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
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
      onResponseData(_controller, chunk) {
        chunks.push(chunk);
      },
      onResponseEnd() {
        over();
        const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
        resolve({ status, headers, text: body.toString("utf8") });
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
