// The requests of a client: JSON over `fetch`, with the token and time limits. They are repeated while the server cannot be reached. For an
// unsuccessful reply, they reject with a LongshoreError that has the server's code.

import { type Backoff, backoffMs } from "../core/backoff.ts";
import type { Clock } from "../core/clock.ts";
import { isClosing, isTransient, LongshoreError, toError } from "../core/errors.ts";
import { pause } from "../core/pause.ts";
import { type EventMessage, EventParser } from "../net/http/read-events.ts";
import { apiPrefix } from "../protocols/longshore/wire/prefix.ts";
import { Refusal, refusalOf, unreachable } from "./refusal.ts";

export type Query = Readonly<Record<string, string | number | undefined>>;

export interface Ask {
  readonly query?: Query;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  /** False for a change that must not be made twice: it is sent again only when the server has certainly not made it. */
  readonly repeats?: boolean;
  /** How long the server itself waits before it replies, as in a long poll. Added to the time limit of the reply. */
  readonly waitMs?: number;
}

export interface RequestsOptions {
  readonly base: URL;
  readonly token?: string | undefined;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  /** How long a request is tried again while the server cannot be reached. */
  readonly patienceMs: number;
}

/** How long a reply may take, and how long an event stream may be silent: the server sends heartbeats far more often. */
const silenceMsMax = 30_000;

/** As for workers: the largest responses, such as pages and outputs, are smaller. */
const answerBytesMax = 64 * 1024 * 1024;

const backoff: Backoff = { kind: "exponential", delayMs: 100, maxMs: 2_000, jitter: 0.2 };

export class Requests {
  readonly #options: RequestsOptions;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(options: RequestsOptions) {
    this.#options = options;
    this.#headers = options.token === undefined ? {} : { authorization: `Bearer ${options.token}` };
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  get<Answer>(path: string, ask: Omit<Ask, "body"> = {}): Promise<Answer> {
    return this.#patiently(() => this.#json("GET", path, ask), ask);
  }

  post<Answer>(path: string, ask: Ask = {}): Promise<Answer> {
    return this.#patiently(() => this.#json("POST", path, ask), ask);
  }

  /** Sends a change. `isNew` is false when the server already had it. */
  put<Answer>(path: string, ask: Ask): Promise<{ answer: Answer; isNew: boolean }> {
    return this.#patiently(async () => {
      const { status, answer } = await this.#reply<Answer>("PUT", path, ask);
      return { answer, isNew: status === 201 };
    }, ask);
  }

  delete<Answer>(path: string, ask: Omit<Ask, "body"> = {}): Promise<Answer> {
    return this.#patiently(() => this.#json("DELETE", path, ask), ask);
  }

  /** The events of one connection, after `lastEventId`. Ends when the server ends the stream; throws LONGSHORE_UNREACHABLE when it breaks. */
  async *events(path: string, { query, signal, lastEventId }: Ask & { lastEventId?: string }): AsyncGenerator<EventMessage, void, void> {
    const limit = this.#timeLimit(signal);
    const resume: Record<string, string> = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
    try {
      const response = await this.#fetch("GET", path, { query }, { accept: "text/event-stream", ...resume }, limit.signal);
      if (!response.ok || response.body === null) throw await this.#refusal(response);
      const parser = new EventParser();
      for await (const bytes of chunksOf(response.body)) {
        limit.renew();
        yield* parser.push(bytes);
      }
    } catch (error) {
      throw this.#failure(error, signal);
    } finally {
      limit.end();
    }
  }

  /** Repeats a request. The time limit starts at the first failure, because a long poll may have waited before it. */
  async #patiently<Answer>(ask: () => Promise<Answer>, { signal, repeats = true }: Ask): Promise<Answer> {
    const { clock, patienceMs } = this.#options;
    const mayRepeat = repeats ? isTemporary : isUnsent;
    let failedAt: number | undefined;
    for (let tries = 1; ; tries++) {
      signal?.throwIfAborted();
      try {
        return await ask();
      } catch (thrown) {
        signal?.throwIfAborted();
        failedAt ??= clock.now();
        if (!mayRepeat(toError(thrown)) || clock.now() - failedAt >= patienceMs) throw thrown;
      }
      await pause(clock, backoffMs(backoff, tries, Math.random()), signal);
    }
  }

  async #json<Answer>(method: string, path: string, ask: Ask): Promise<Answer> {
    return (await this.#reply<Answer>(method, path, ask)).answer;
  }

  async #reply<Answer>(method: string, path: string, ask: Ask): Promise<{ status: number; answer: Answer }> {
    const limit = this.#timeLimit(ask.signal, ask.waitMs);
    try {
      const response = await this.#fetch(method, path, ask, {}, limit.signal);
      if (!response.ok) throw await this.#refusal(response);
      const text = response.status === 204 ? "null" : await this.#text(response);
      // The body is read completely, so the request need not be aborted. An abort would cost a tenth of a request.
      limit.stop();
      return { status: response.status, answer: this.#parsed(text) as Answer };
    } catch (error) {
      limit.end();
      throw this.#failure(error, ask.signal);
    }
  }

  #fetch(method: string, path: string, { query = {}, body }: Ask, more: Record<string, string>, signal: AbortSignal): Promise<Response> {
    const { base, fetch } = this.#options;
    const url = new URL(`${base.pathname.replace(/\/$/, "")}${apiPrefix}${path}`, base);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value));
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    const headers = { ...this.#headers, ...more, ...(body === undefined ? {} : { "content-type": "application/json" }) };
    // No server of Longshore redirects. Another target must not get the input of a run.
    return fetch(url, { method, headers, signal, redirect: "manual", ...content });
  }

  async #refusal(response: Response): Promise<LongshoreError> {
    return refusalOf(response.status, await this.#text(response), { origin: this.#options.base.origin, token: this.#options.token });
  }

  /** The body. A length that the response announces is also the limit that `fetch` applies, unless it unpacks the body. */
  async #text(response: Response): Promise<string> {
    const { headers, body } = response;
    const announced = headers.has("content-encoding") ? null : headers.get("content-length");
    if (body === null || (announced !== null && Number(announced) <= answerBytesMax)) return response.text();
    const decoder = new TextDecoder();
    let text = "";
    let bytes = 0;
    for await (const chunk of chunksOf(body)) {
      bytes += chunk.byteLength;
      if (bytes > answerBytesMax) throw this.#misfit(`has more than ${answerBytesMax} bytes`);
      text += decoder.decode(chunk, { stream: true });
    }
    return text + decoder.decode();
  }

  #misfit(what: string, cause?: unknown): LongshoreError {
    const message = `The response of ${this.#options.base.origin} ${what}. Is that a Longshore server?`;
    return new LongshoreError("LONGSHORE_BAD_CONFIG", message, { cause });
  }

  #parsed(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw this.#misfit("is not JSON", cause);
    }
  }

  /** What a caller gets for an error of `fetch`. The reason of its own signal comes first. */
  #failure(error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) return signal.reason;
    return error instanceof LongshoreError ? error : unreachable(this.#options.base.origin, error);
  }

  /** A signal that aborts when the caller's signal does, or when nothing has arrived for too long. */
  #timeLimit(signal: AbortSignal | undefined, waitMs = 0) {
    const { clock, base } = this.#options;
    const silence = new AbortController();
    const ms = silenceMsMax + waitMs;
    const arm = () => clock.at(clock.now() + ms, () => silence.abort(unreachable(base.origin, new Error(`no reply for ${ms / 1_000} s`))));
    let stop = arm();
    return {
      signal: signal === undefined ? silence.signal : AbortSignal.any([signal, silence.signal]),
      renew() {
        stop();
        stop = arm();
      },
      stop: () => stop(),
      end() {
        stop();
        // Closes a connection that is still read.
        silence.abort();
      },
    };
  }
}

/** Whether the same request may succeed later: the server is not reachable, starts, stops, or is overloaded. */
export function isTemporary(error: Error): boolean {
  return isTransient(error) || isClosing(error) || (error instanceof Refusal && error.status === 503);
}

/**
 * Whether a request that must not be performed twice may be sent again. It was certainly not performed when the server refused it, or when
 * no connection was made.
 */
function isUnsent(error: Error): boolean {
  if (error instanceof Refusal) return error.status === 503;
  return isTransient(error) && codeIn(error) === "ECONNREFUSED";
}

function codeIn(error: unknown): unknown {
  for (let link = error; link instanceof Error; link = link.cause) {
    if ("code" in link && !(link instanceof LongshoreError)) return link.code;
  }
  return undefined;
}

/** Not every browser can iterate a stream. */
async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  const reader = body.getReader();
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) yield chunk.value;
  } finally {
    reader.releaseLock();
  }
}
