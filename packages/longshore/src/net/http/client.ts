// A client of one server: its connections, its base address, its token, and requests with complete responses.

import type { Pool } from "undici";
import { LongshoreError, toError } from "../../core/errors.ts";
import { answerMsMax, openPool, type Reply, send } from "./send.ts";

export interface HttpClientOptions {
  readonly origin: string;
  /** The base of all paths, without a trailing slash. */
  readonly base: string;
  readonly token?: string | undefined;
  /** The limit of concurrent requests; each long poll holds one. Null means no limit. */
  readonly connections: number | null;
}

export interface HttpCall {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  /** JSON, as text or as UTF-8 bytes. */
  readonly body?: string | Buffer | undefined;
  readonly headers?: { readonly [name: string]: string };
  /** How long the server may wait by itself, in addition to the usual response time: for long polls. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal | undefined;
  readonly bytesMax?: number | undefined;
}

export class HttpClient {
  /** The base address of all paths, for error texts. */
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

  /** Rejects with LONGSHORE_UNREACHABLE when there is no complete response. Resolves with every status. */
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
