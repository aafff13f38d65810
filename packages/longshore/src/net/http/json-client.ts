// A client of our own server's JSON API: one pool of connections, requests with complete responses, and refusals as LongshoreErrors.

import { type ErrorCode, errorCodes, LongshoreError } from "../../core/errors.ts";
import { isObject, parseOrUndefined } from "../../core/json/json.ts";
import { withoutEndSlashes } from "../../core/text.ts";
import { type HttpCall, HttpClient } from "./client.ts";
import { isTransientStatus, quoted, type Reply } from "./send.ts";

export interface JsonClientOptions {
  readonly url: URL;
  readonly token?: string | undefined;
  /** The limit of concurrent requests; each long poll holds one. Null means no limit. */
  readonly connections: number | null;
}

export class JsonClient {
  readonly #http: HttpClient;

  static async open({ url, token, connections }: JsonClientOptions): Promise<JsonClient> {
    return new JsonClient(await HttpClient.open({ origin: url.origin, base: withoutEndSlashes(url.pathname), token, connections }));
  }

  private constructor(http: HttpClient) {
    this.#http = http;
  }

  /**
   * The value of a response with a status below 300. Rejects with the server's error code, or with LONGSHORE_UNREACHABLE when the call may
   * be repeated.
   */
  async call(call: HttpCall): Promise<unknown> {
    const reply = await this.#http.send(call).catch((error: unknown) => {
      call.signal?.throwIfAborted();
      throw error;
    });
    const value = parseOrUndefined(reply.text);
    if (reply.status < 300 && value !== undefined) return value;
    throw refusalOf(`${call.method} ${this.#http.address}${call.path}`, reply, value);
  }

  close(): Promise<void> {
    return this.#http.close();
  }
}

function refusalOf(what: string, reply: Reply, value: unknown): LongshoreError {
  const { code, message, field, expected } = (isObject(value) && isObject(value.error) ? value.error : {}) as Record<string, unknown>;
  const said = typeof message === "string" ? message : quoted(reply);
  return new LongshoreError(codeFor(reply.status, code), `${what}: ${said}`, {
    detail: { ...(typeof field === "string" ? { field } : {}), ...(typeof expected === "string" ? { expected } : {}) },
  });
}

/**
 * The statuses of an HTTP server for a request that it will never accept: it is malformed, or its body, address or headers are too large.
 */
const refusedStatuses: ReadonlySet<number> = new Set([400, 413, 414, 431]);

function codeFor(status: number, code: unknown): ErrorCode {
  if (isTransientStatus(status)) return "LONGSHORE_UNREACHABLE";
  if (status === 401 || status === 403) return "LONGSHORE_UNAUTHORIZED";
  const known = errorCodes.find((one) => one === code);
  if (known !== undefined) return known;
  if (refusedStatuses.has(status)) return "LONGSHORE_BAD_INPUT";
  // A response in another format is not from a working Longshore server.
  return "LONGSHORE_UNREACHABLE";
}
