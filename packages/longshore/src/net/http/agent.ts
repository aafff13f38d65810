// Sends requests to servers whose addresses are known only at the call, such as the storage of large payloads. Redirects are not followed.

import type { Agent, Dispatcher } from "undici";
import { type Reply, send } from "./send.ts";

export interface AgentCall {
  readonly url: URL;
  readonly method: "GET" | "POST";
  readonly headers?: { readonly [name: string]: string };
  readonly body?: string | Uint8Array;
  /** How long to wait for the start of the response, and for each of its pieces. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  readonly bytesMax: number;
  /** After this time, a response that arrives with less than 1 KiB a second is refused. Default: 10 s. */
  readonly slowMs?: number;
}

export class HttpAgent {
  readonly #connections: number;
  #agent: Promise<Agent> | undefined;

  /** `connections` limits the concurrent requests to each server. */
  constructor(connections: number) {
    this.#connections = connections;
  }

  /** Rejects when there is no complete response. Rejects with LONGSHORE_LIMIT when the response is larger than `bytesMax`. */
  async send({ url, method, headers = {}, body, timeoutMs, signal, bytesMax, slowMs }: AgentCall): Promise<Reply> {
    this.#agent ??= import("undici").then((undici) => new undici.Agent({ connections: this.#connections }));
    const request = {
      ...{ origin: url.origin, path: url.pathname + url.search, method, headers, body: body ?? null },
      ...{ headersTimeout: timeoutMs, bodyTimeout: timeoutMs },
    };
    return send(await this.#agent, request as Dispatcher.DispatchOptions, signal, { bytesMax, slowMs });
  }

  async close(): Promise<void> {
    await (await this.#agent)?.destroy();
  }
}
