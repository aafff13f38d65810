// One request and its whole answer, straight on undici's dispatcher: its `request` makes a stream for each body, which costs a third of a
// small exchange, and bodies here are always read whole.

import type { Dispatcher } from "undici";

export interface HttpReply {
  readonly status: number;
  readonly body: string;
  readonly headers: { readonly [name: string]: string | string[] | undefined };
}

export function exchange(dispatcher: Dispatcher, options: Dispatcher.DispatchOptions, signal: AbortSignal | undefined): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(abortError(signal));
    dispatcher.dispatch(options, new Exchange(resolve, reject, signal));
  });
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (reply: HttpReply) => void;
  readonly #reject: (error: Error) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: HttpReply["headers"] = {};

  constructor(resolve: (reply: HttpReply) => void, reject: (error: Error) => void, signal: AbortSignal | undefined) {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#signal = signal;
    signal?.addEventListener("abort", this.#onAbort);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#signal?.aborted) controller.abort(abortError(this.#signal));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: HttpReply["headers"]): void {
    // 1xx only announces the answer.
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#signal?.removeEventListener("abort", this.#onAbort);
    const [first, second] = this.#chunks;
    const body = first === undefined ? "" : second === undefined ? first.toString() : Buffer.concat(this.#chunks).toString();
    this.#resolve({ status: this.#status, body, headers: this.#headers });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#reject(error);
  }

  readonly #onAbort = (): void => {
    const error = abortError(this.#signal as AbortSignal);
    // One that still waits for a connection has no controller yet; it is ended when it gets one.
    this.#controller?.abort(error);
    this.#reject(error);
  };
}

function abortError(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error("The request was given up.");
}
