// One request and its whole answer, straight on undici's dispatcher: its `request` makes a stream for each body, which costs a third of a
// small exchange, and bodies here are always read whole.

import type { Dispatcher } from "undici";
import { ReceivedBody } from "../../../received-body.ts";

export interface HttpReply {
  readonly status: number;
  readonly body: string;
  readonly headers: { readonly [name: string]: string | string[] | undefined };
}

export interface ExchangeOptions {
  readonly signal?: AbortSignal | undefined;
  /** The largest answer that is read. */
  readonly bytesMax: number;
}

export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { signal, bytesMax }: ExchangeOptions,
): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(abortError(signal));
    dispatcher.dispatch(request, new Exchange(resolve, reject, signal, bytesMax));
  });
}

class Exchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (reply: HttpReply) => void;
  readonly #reject: (error: Error) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #body: ReceivedBody;
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: HttpReply["headers"] = {};

  constructor(resolve: (reply: HttpReply) => void, reject: (error: Error) => void, signal: AbortSignal | undefined, bytesMax: number) {
    this.#body = new ReceivedBody(bytesMax);
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

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const refusal = this.#body.push(chunk);
    if (refusal !== undefined) controller.abort(new Error(refusal));
  }

  onResponseEnd(): void {
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#resolve({ status: this.#status, body: this.#body.bytes().toString(), headers: this.#headers });
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
