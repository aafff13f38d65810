// A client of our own server's JSON: one pool of connections, one request with its whole answer, and refusals as our own errors.

import type { Pool } from "undici";
import { type ErrorCode, errorCodes, LongshoreError } from "../../core/errors.ts";
import { isObject, parseOrUndefined } from "../../core/json/json.ts";
import { withoutEndSlashes } from "../../core/text.ts";
import { answerMsMax, isTransientStatus, openPool, quoted, type Reply, send } from "./send.ts";

export interface JsonClientOptions {
  readonly url: URL;
  readonly token?: string | undefined;
  /** How many requests may be under way at once; long polls hold one each. */
  readonly connections: number;
}

export interface JsonCall {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  /** JSON, as text or in UTF-8. */
  readonly body?: string | Buffer;
  /** How long the server may take by itself, on top of what any answer takes: the wait of a long poll. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal | undefined;
}

export class JsonClient {
  readonly #pool: Pool;
  readonly #base: string;
  readonly #origin: string;
  readonly #headers: { readonly [name: string]: string };

  static async open(options: JsonClientOptions): Promise<JsonClient> {
    return new JsonClient(await openPool(options.url, options.connections), options);
  }

  private constructor(pool: Pool, { url, token }: JsonClientOptions) {
    this.#pool = pool;
    this.#origin = url.origin;
    this.#base = withoutEndSlashes(url.pathname);
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  /** The value of an answer below 300. Rejects with the code that the server named, or LONGSHORE_UNREACHABLE where it may be repeated. */
  async call(call: JsonCall): Promise<unknown> {
    const reply = await this.#send(call);
    const value = parseOrUndefined(reply.text);
    if (reply.status < 300 && value !== undefined) return value;
    throw refusalOf(`${call.method} ${this.#origin}${this.#base}${call.path}`, reply, value);
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  async #send({ method, path, body, waitMs = 0, signal }: JsonCall): Promise<Reply> {
    const headers = { ...this.#headers, ...(body === undefined ? {} : { "content-type": "application/json" }) };
    const request = { method, path: this.#base + path, headers, body: body ?? null };
    const patience = { headersTimeout: answerMsMax + waitMs, bodyTimeout: answerMsMax };
    try {
      return await send(this.#pool, { ...request, ...patience }, signal);
    } catch (error) {
      signal?.throwIfAborted();
      const message = `${method} ${this.#origin}${request.path}: ${(error as Error).message}`;
      throw new LongshoreError("LONGSHORE_UNREACHABLE", message, { cause: error });
    }
  }
}

function refusalOf(what: string, reply: Reply, value: unknown): LongshoreError {
  const { code, message, field, expected } = (isObject(value) && isObject(value.error) ? value.error : {}) as Record<string, unknown>;
  const said = typeof message === "string" ? message : quoted(reply);
  return new LongshoreError(codeFor(reply.status, code), `${what}: ${said}`, {
    detail: { ...(typeof field === "string" ? { field } : {}), ...(typeof expected === "string" ? { expected } : {}) },
  });
}

function codeFor(status: number, code: unknown): ErrorCode {
  if (isTransientStatus(status)) return "LONGSHORE_UNREACHABLE";
  if (status === 401 || status === 403) return "LONGSHORE_UNAUTHORIZED";
  const known = errorCodes.find((one) => one === code);
  if (known !== undefined) return known;
  // An answer in another form is not from a working server of ours.
  return "LONGSHORE_UNREACHABLE";
}
