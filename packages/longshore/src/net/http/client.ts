// A client of one server: its connections, the address that all paths are below, its token, and one request with its whole answer.

import type { Pool } from "undici";
import { LongshoreError, toError } from "../../core/errors.ts";
import { answerMsMax, openPool, type Reply, send } from "./send.ts";

export interface HttpClientOptions {
  readonly origin: string;
  /** The path that the paths of all calls are below, without a slash at its end. */
  readonly base: string;
  readonly token?: string | undefined;
  /** How many requests may be under way at once; long polls hold one each. Null is any number. */
  readonly connections: number | null;
}

export interface HttpCall {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  /** JSON, as text or in UTF-8. */
  readonly body?: string | Buffer | undefined;
  readonly headers?: { readonly [name: string]: string };
  /** How long the server may take by itself, on top of what any answer takes: the wait of a long poll. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal | undefined;
  readonly bytesMax?: number | undefined;
}

export class HttpClient {
  /** The address that all paths are below, for error texts. */
  readonly address: string;
  readonly #pool: Pool;
  readonly #base: string;
  readonly #headers: { readonly [name: string]: string };

  static async open(options: HttpClientOptions): Promise<HttpClient> {
    return new HttpClient(await openPool(options.origin, options.connections), options);
  }

  private constructor(pool: Pool, { origin, base, token }: HttpClientOptions) {
    this.#pool = pool;
    this.#base = base;
    this.address = origin + base;
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  /** Rejects with LONGSHORE_UNREACHABLE when there is no whole answer, whatever its status is. */
  async send({ method, path, body, headers, waitMs = 0, signal, bytesMax }: HttpCall): Promise<Reply> {
    const request = {
      method,
      path: this.#base + path,
      headers: { ...this.#headers, ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      body: body ?? null,
      headersTimeout: answerMsMax + waitMs,
      bodyTimeout: answerMsMax,
    };
    try {
      return await send(this.#pool, request, signal, { bytesMax });
    } catch (error) {
      const message = `${method} ${this.address}${path}: ${toError(error).message}`;
      throw new LongshoreError("LONGSHORE_UNREACHABLE", message, { cause: error });
    }
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}
