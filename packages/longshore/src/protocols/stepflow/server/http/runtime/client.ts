// The connections to one worker, and the short requests: the handshake, the list of components, answers to its requests. Calls of
// components use a separate pool: an answer must never wait behind the call that needs it.

import type { Dispatcher } from "undici";
import { ByteBudget } from "../../../../../core/byte-budget.ts";
import { LongshoreError, toError } from "../../../../../core/errors.ts";
import type { Json, JsonObject } from "../../../../../core/json/json.ts";
import { openPool } from "../../../../../net/http/send.ts";
import { handOutHeader, instanceHeader } from "../../../wire/http/headers.ts";
import { notificationText, parseRpc, type RpcErrorBody, requestText } from "../../../wire/json-rpc.ts";
import { type Exchange, exchange, type WorkerReply } from "./exchange.ts";

export interface WorkerClientOptions {
  /** Requests are sent to exactly this address. */
  readonly url: URL;
  makeId(): string;
  readonly receivingBytes?: number;
}

/** The budget of all incomplete responses of one worker: half of the budget that all callers of the server share. */
const receivingBytesDefault = 128 * 1024 * 1024;

/** The timeout of all requests except calls of components, which have no timeout here. */
const controlMs = 30_000;
const controlConnectionsMax = 16;
const poolOptions = {
  connectMs: 10_000,
  /** How long an idle connection is kept. Common servers close it after 5 s. A request that is sent during the close would look lost. */
  idleMs: 3_000,
  probeMs: 30_000,
  /** No limit of the size here: `exchange` limits it, because a response may be a stream. */
  bytesMax: null,
};

const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };

export class WorkerClient {
  readonly #url: URL;
  readonly #makeId: () => string;
  readonly #calls: Dispatcher;
  readonly #control: Dispatcher;
  readonly #receiving: ByteBudget;

  /** Loads the HTTP library on demand: a server without such plugins never needs it. */
  static async open(options: WorkerClientOptions): Promise<WorkerClient> {
    const { origin } = options.url;
    // The lane limits the number of open calls.
    const calls = await openPool(origin, null, poolOptions);
    return new WorkerClient(options, calls, await openPool(origin, controlConnectionsMax, poolOptions));
  }

  private constructor(
    { url, makeId, receivingBytes = receivingBytesDefault }: WorkerClientOptions,
    calls: Dispatcher,
    control: Dispatcher,
  ) {
    this.#url = url;
    this.#makeId = makeId;
    this.#calls = calls;
    this.#control = control;
    this.#receiving = new ByteBudget(receivingBytes);
  }

  /** Bytes of incomplete answers. */
  get receivedBytes(): number {
    return this.#receiving.held;
  }

  get url(): string {
    return this.#url.href;
  }

  newId(): string {
    return this.#makeId();
  }

  /** Calls a component. Resolves when its answer is complete. */
  execute(body: string, handOut: string, how: Exchange): Promise<WorkerReply> {
    const request = this.#post(body, { [handOutHeader]: encodeURIComponent(handOut) });
    return exchange(this.#calls, { ...request, headersTimeout: 0, bodyTimeout: 0 }, how, this.#receiving);
  }

  /** Sends a request that is answered at once. Throws LONGSHORE_UNREACHABLE for anything but a JSON-RPC result or error. */
  async ask(method: string, params: JsonObject, signal: AbortSignal): Promise<{ result: Json } | { error: RpcErrorBody }> {
    const id = this.newId();
    const { status, body } = await this.#send(requestText(id, method, params), {}, method, signal);
    try {
      const message = parseRpc(body);
      if (message.kind === "result" && message.id === id) return { result: message.result };
      if (message.kind === "error" && message.id === id) return { error: message.error };
      throw new Error(`it is no answer to request ${id}`);
    } catch (error) {
      throw this.#unreachable(`${method} was answered with status ${status} and no JSON-RPC answer: ${toError(error).message}`, error);
    }
  }

  /** Returns the status. */
  async notify(method: string, signal: AbortSignal): Promise<number> {
    return (await this.#send(notificationText(method, {}), {}, method, signal)).status;
  }

  /** Answers a request of the worker, at the same process. Returns the status. */
  async answer(body: string, instanceId: string | null, signal: AbortSignal): Promise<number> {
    const own: Record<string, string> = instanceId === null ? {} : { [instanceHeader]: instanceId };
    return (await this.#send(body, own, "an answer", signal)).status;
  }

  /** The status of a GET below the worker's origin, for its health. */
  async get(path: string, signal: AbortSignal): Promise<number> {
    const options = { origin: this.#url.origin, path, method: "GET" as const, headersTimeout: controlMs, bodyTimeout: controlMs };
    return (await exchange(this.#control, options, { signal }, this.#receiving)).status;
  }

  /** Lets open requests finish and accepts no new ones. */
  async retire(): Promise<void> {
    await this.#calls.close();
    await this.#control.close();
  }

  /** Aborts all open requests. */
  async close(): Promise<void> {
    await Promise.all([this.#calls.destroy(), this.#control.destroy()]);
  }

  async #send(body: string, extra: Record<string, string>, what: string, signal: AbortSignal): Promise<WorkerReply> {
    const options = { ...this.#post(body, extra), headersTimeout: controlMs, bodyTimeout: controlMs };
    try {
      return await exchange(this.#control, options, { signal }, this.#receiving);
    } catch (error) {
      throw this.#unreachable(`${what} could not be sent to the worker: ${toError(error).message}`, error);
    }
  }

  #post(body: string, extra: Record<string, string>): Dispatcher.DispatchOptions {
    const { origin, pathname, search } = this.#url;
    return { origin, path: pathname + search, method: "POST", headers: { ...headers, ...extra }, body };
  }

  #unreachable(message: string, cause: unknown): LongshoreError {
    return new LongshoreError("LONGSHORE_UNREACHABLE", `${this.#url.href}: ${message}`, { cause });
  }
}
