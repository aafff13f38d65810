// One thread or process of handlers, and the calls that run in it. It is `starting` until its modules are loaded, then `ready`, then
// `ended`. It ends by itself (a crash), because its modules could not be loaded, or on request. Calls that run in it at its end fail and
// may be retried.

import type { Context, StepPart } from "../../core/context.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { Json } from "../../core/json/json.ts";
import type { Carrier, CarrierOptions, StartCarrier } from "./carriers.ts";
import { type FromHandlers, type HostCall, type PartsCall, packError, unpackError } from "./messages.ts";

interface Calling {
  readonly task: string;
  readonly context: Context;
  /** The open readers of parts of its handler. */
  readonly readers: Map<number, AsyncIterator<StepPart>>;
  readonly settle: (settle: { readonly value: unknown } | { readonly error: Error }) => void;
}

export interface HostNews {
  /** Called when it ended by itself. `tasks` are the names of the tasks that ran in it. */
  readonly crashed: (error: Error, tasks: readonly string[]) => void;
  readonly ended: () => void;
}

export class Host {
  /** Resolves with the names of the tasks that it can run; rejects when its modules cannot be loaded. */
  readonly ready: Promise<readonly string[]>;
  readonly #carrier: Carrier;
  readonly #what: string;
  readonly #news: HostNews;
  readonly #calls = new Map<number, Calling>();
  #sequence = 0;
  #over = false;
  #reported = false;
  #resolveReady: (tasks: readonly string[]) => void = () => {};
  #rejectReady: (error: Error) => void = () => {};

  constructor(what: "thread" | "process", start: StartCarrier, options: CarrierOptions, news: HostNews) {
    this.#what = what;
    this.#news = news;
    this.ready = new Promise((resolve, reject) => {
      this.#resolveReady = resolve;
      this.#rejectReady = reject;
    });
    // The caller of `ready` receives the error; without this line Node would report it a second time as unhandled.
    this.ready.catch(() => {});
    this.#carrier = start(options, { message: (message) => this.#take(message), ended: (error) => this.#onEnded(error) });
  }

  /** How many calls run in it. */
  get busy(): number {
    return this.#calls.size;
  }

  get over(): boolean {
    return this.#over;
  }

  async call(task: string, input: unknown, context: Context): Promise<unknown> {
    await this.ready;
    if (this.#over) throw new Error(`The ${this.#what} of task "${task}" ended before it was called.`);
    const call = this.#sequence++;
    const { attempt, ids, idempotencyKey, trace, upstream, deferrals, deferred, native, signal } = context;
    const stop = () => this.#carrier.send({ kind: "stop", call, reason: packError(signal.reason) });
    signal.addEventListener("abort", stop, { once: true });
    try {
      return await new Promise((resolve, reject) => {
        this.#calls.set(call, {
          task,
          context,
          readers: new Map(),
          settle: (ended) => ("error" in ended ? reject(ended.error) : resolve(ended.value)),
        });
        const sent = { attempt, ids, idempotencyKey, trace, upstream, deferrals, deferred, native };
        this.#carrier.send({ kind: "call", call, task, input, context: sent });
        if (signal.aborted) stop();
      });
    } finally {
      signal.removeEventListener("abort", stop);
      this.#calls.delete(call);
    }
  }

  /** Ends it at once. Running calls fail. */
  end(): Promise<void> {
    this.#reported = true;
    return this.#carrier.end();
  }

  #take(message: FromHandlers): void {
    if (message.kind === "ready") return this.#resolveReady(message.tasks);
    if (message.kind === "refused") {
      this.#rejectReady(unpackError(message.error));
      void this.end();
      return;
    }
    const calling = this.#calls.get(message.call);
    if (calling === undefined) return;
    const { context, settle } = calling;
    if (message.kind === "returned") settle({ value: message.value });
    else if (message.kind === "threw") settle({ error: unpackError(message.error) });
    else if (message.kind === "log") context.log(message.entry, message.stream);
    else if (message.kind === "progress") context.progress(message.value);
    else if (message.kind === "amend") context.amend(message.name, message.value);
    else void this.#answer(message, calling);
  }

  async #answer({ call, ask, what, value }: Extract<FromHandlers, { kind: "ask" }>, calling: Calling): Promise<void> {
    try {
      this.#carrier.send({ kind: "answer", call, ask, value: await perform(what, value, calling) });
    } catch (error) {
      this.#carrier.send({ kind: "answer", call, ask, error: packError(error) });
    }
  }

  #onEnded(reason: Error): void {
    if (this.#over) return;
    this.#over = true;
    const calls = [...this.#calls.values()];
    const tasks = calls.map(({ task }) => task);
    const error = new Error(`The ${this.#what} in which the handler ran ended: ${reason.message}`, { cause: reason });
    Object.defineProperty(error, "name", { value: reason.name, configurable: true });
    for (const { settle } of calls) settle({ error });
    this.#rejectReady(
      new LongshoreError("LONGSHORE_BAD_CONFIG", `A ${this.#what} of handlers ended while it loaded: ${reason.message}`, { cause: reason }),
    );
    if (!this.#reported) this.#news.crashed(error, tasks);
    this.#news.ended();
  }
}

async function perform(what: HostCall, value: unknown, calling: Calling): Promise<unknown> {
  const { context } = calling;
  if (what === "emit") {
    const { value: part, uid } = value as { value: Json; uid?: string };
    return context.emit(part, uid === undefined ? {} : { uid });
  }
  if (what === "nextPart") return nextPart(value as PartsCall, calling);
  if (what === "endParts") return void (await calling.readers.get((value as PartsCall).reader)?.return?.());
  if (what === "heartbeat") return context.heartbeat();
  if (what === "putBlob") return context.blobs.put(value as Uint8Array | string);
  if (what === "ask") {
    const { name, value: question } = value as { name: string; value: Json };
    return context.ask(name, question);
  }
  return context.blobs.get(value as string);
}

/** Returns undefined when there are no more parts. */
async function nextPart({ reader, stepId }: PartsCall, { context, readers }: Calling): Promise<StepPart | undefined> {
  let parts = readers.get(reader);
  if (parts === undefined) {
    parts = context.parts(stepId)[Symbol.asyncIterator]();
    readers.set(reader, parts);
  }
  const next = await parts.next();
  return next.done ? undefined : next.value;
}
