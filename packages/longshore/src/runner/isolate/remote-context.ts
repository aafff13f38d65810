// The context of a handler that runs in a thread or a separate process: the same object, but its calls are sent to the runner.

import type { Blobs, Context, StepPart } from "../../core/context.ts";
import { durationMs } from "../../core/duration.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { Json } from "../../core/json/json.ts";
import { toJson } from "../../core/json/to-json.ts";
import { type CallContext, type FromHandlers, type HostCall, type PartsCall, type SentError, unpackError } from "./messages.ts";

export interface Line {
  post(message: FromHandlers): void;
  /** Processes the messages that have arrived, without waiting: for a handler that computes and checks its signal from time to time. */
  look(): void;
}

/** One call on the handler's side. */
export class RemoteCall {
  readonly context: Context;
  readonly #id: number;
  readonly #line: Line;
  readonly #aborter = new AbortController();
  readonly #calls = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #asks = 0;
  #readers = 0;
  #over = false;

  constructor(id: number, task: string, sent: CallContext, line: Line) {
    this.#id = id;
    this.#line = line;
    this.context = this.#makeContext(task, sent);
  }

  stop(reason: SentError): void {
    this.#aborter.abort(unpackError(reason));
  }

  answer(ask: number, value: unknown, error: SentError | undefined): void {
    const waiting = this.#calls.get(ask);
    this.#calls.delete(ask);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(unpackError(error));
  }

  /** Ends the call: further output of the handler is dropped. */
  end(): void {
    this.#over = true;
    const error = new LongshoreError("LONGSHORE_CLOSED", "The handler has ended, so its context no longer works.");
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
  }

  #makeContext(task: string, sent: CallContext): Context {
    const call = this.#id;
    const signal = lookingSignal(this.#aborter.signal, () => this.#line.look());
    const blobs: Blobs = {
      put: (bytes) => this.#ask("putBlob", bytes) as Promise<string>,
      get: (id) => this.#ask("getBlob", id) as Promise<Uint8Array>,
    };
    return {
      task,
      signal,
      ...sent,
      blobs,
      log: (entry, stream = "stdout") => this.#post({ kind: "log", call, entry: typeof entry === "string" ? entry : plain(entry), stream }),
      progress: (value) => this.#post({ kind: "progress", call, value: toJson(value) }),
      emit: (value, { uid } = {}) => this.#emit(value, uid),
      parts: (stepId, options = {}) => this.#parts(stepId, options.signal),
      amend: (name, value) => this.#post({ kind: "amend", call, name, value: toJson(value) }),
      ask: async (name, value) => (await this.#ask("ask", { name, value: toJson(value) })) as Json,
      heartbeat: async () => void (await this.#ask("heartbeat")),
      defer: (delay, output) => ({ "longshore.deferral": true, delayMs: durationMs(delay, "delay of ctx.defer"), output }),
    };
  }

  /** A failure also fails the task, so the handler may ignore the promise. */
  #emit(value: unknown, uid: string | undefined): Promise<void> {
    const emitted = (async () => void (await this.#ask("emit", { value: toJson(value), uid })))();
    emitted.catch(() => {});
    return emitted;
  }

  async *#parts(stepId: string, signal: AbortSignal | undefined): AsyncGenerator<StepPart, void> {
    const partsCall: PartsCall = { reader: this.#readers++, stepId };
    // Cancels the wait in the runner; its reply is not needed.
    const stop = () => void this.#ask("endParts", partsCall).catch(() => {});
    signal?.addEventListener("abort", stop, { once: true });
    try {
      for (;;) {
        signal?.throwIfAborted();
        const part = await abortable(this.#ask("nextPart", partsCall), signal);
        if (part === undefined) return;
        yield part as StepPart;
      }
    } finally {
      signal?.removeEventListener("abort", stop);
      if (!this.#over) stop();
    }
  }

  #post(message: FromHandlers): void {
    if (!this.#over) this.#line.post(message);
  }

  #ask(what: HostCall, value?: unknown): Promise<unknown> {
    if (this.#over) return Promise.reject(new LongshoreError("LONGSHORE_CLOSED", "The handler has ended, so its context no longer works."));
    const ask = this.#asks++;
    return new Promise((resolve, reject) => {
      this.#calls.set(ask, { resolve, reject });
      this.#line.post({ kind: "ask", call: this.#id, ask, what, value });
    });
  }
}

function abortable<Value>(work: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const aborted = () => reject(signal.reason);
    signal.addEventListener("abort", aborted, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", aborted));
  });
}

/**
 * A signal that processes the messages that have arrived whenever it is checked. Otherwise a handler that never pauses would not notice its
 * abort.
 */
function lookingSignal(signal: AbortSignal, look: () => void): AbortSignal {
  const aborted = Object.getOwnPropertyDescriptor(AbortSignal.prototype, "aborted")?.get as () => boolean;
  const read = () => {
    const known = aborted.call(signal);
    if (!known) look();
    return known || aborted.call(signal);
  };
  Object.defineProperty(signal, "aborted", { get: read, configurable: true });
  Object.defineProperty(signal, "throwIfAborted", {
    value: () => {
      if (read()) throw signal.reason;
    },
    configurable: true,
  });
  return signal;
}

/** The fields as JSON would write them. Fields that JSON refuses (a cycle, a bigint) become a text, because logging never throws. */
function plain(entry: { readonly [field: string]: unknown }): string | { [field: string]: unknown } {
  try {
    return toJson(entry) as { [field: string]: unknown };
  } catch {
    return String(entry);
  }
}
