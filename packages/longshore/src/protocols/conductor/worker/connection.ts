// The sockets to one server: at most 100 connections, of which up to 50 are kept when idle. HTTP/2 is used if the server chooses it.
//
// Two pools. The first fifty concurrent requests use connections that are kept; further requests use connections that close after a short
// idle time. So a burst never leaves more than fifty idle sockets behind.

import type { buildConnector, Dispatcher, Client as SingleClient } from "undici";
import { LongshoreError } from "../../../core/errors.ts";
import { HttpAgent } from "../../../net/http/agent.ts";
import { type Reply, send } from "../../../net/http/send.ts";
import type { Settings } from "./options.ts";

export interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT";
  /** The path with its query. */
  readonly path: string;
  readonly headers: { readonly [name: string]: string };
  readonly body?: string | undefined;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** True when the response contains a task with its input; other responses are short. */
  readonly carriesTask?: boolean | undefined;
}

const keptConnectionsMax = 50;
const burstConnectionsMax = 50;
/** Maximum connections to each server that stores large inputs. */
const elsewhereConnectionsMax = 10;
/** How long an idle connection is kept: below the idle limit of common load balancers (60 s). */
const keepAliveMs = 30_000;
/** Long enough for the next request of the same burst. */
const burstKeepAliveMs = 500;
/** Maximum number of concurrent requests on one HTTP/2 connection; the default of Node and most servers. */
const streamsMax = 100;
/** A poll may return a hundred tasks with their inputs. */
const answerBytesMax = 64 * 1024 * 1024;
/** The limit for definitions, tokens and refusals. It is low, because every running task may receive one at the same time. */
const shortAnswerBytesMax = 1024 * 1024;
/** After this many consecutive failures of HTTP/2 itself, the next connections offer only HTTP/1.1: some load balancers stall HTTP/2. */
const http2FailuresMax = 3;

type Undici = typeof import("undici");

export class Connection {
  readonly #undici: Undici;
  readonly #settings: Settings;
  readonly #origin: string;
  #kept: Dispatcher;
  #burst: Dispatcher;
  readonly #elsewhere = new HttpAgent(elsewhereConnectionsMax);
  #keptRunning = 0;
  #http2Failures = 0;
  #http2: boolean;

  /** Loads the HTTP library only now, so that importing a worker file stays cheap. */
  static async open(settings: Settings): Promise<Connection> {
    return new Connection(await import("undici"), settings);
  }

  private constructor(undici: Undici, settings: Settings) {
    this.#undici = undici;
    this.#settings = settings;
    this.#origin = settings.url.origin;
    this.#http2 = settings.http2 && settings.url.protocol === "https:";
    this.#kept = this.#pool(keptConnectionsMax, keepAliveMs);
    this.#burst = this.#pool(burstConnectionsMax, burstKeepAliveMs);
  }

  async send(request: HttpRequest): Promise<Reply> {
    const kept = this.#keptRunning < keptConnectionsMax;
    if (kept) this.#keptRunning++;
    try {
      const { method, path, headers, body = null, timeoutMs } = request;
      const options = { origin: this.#origin, method, path, headers, body, headersTimeout: timeoutMs, bodyTimeout: timeoutMs };
      const bytesMax = request.carriesTask ? answerBytesMax : shortAnswerBytesMax;
      const reply = await send(kept ? this.#kept : this.#burst, options, request.signal, { bytesMax });
      this.#http2Failures = 0;
      return reply;
    } catch (error) {
      this.#onFailure(error);
      const path = request.path.split("?")[0];
      const message = `${request.method} ${this.#origin}${path}: ${(error as Error).message}`;
      throw new LongshoreError("LONGSHORE_UNREACHABLE", message, { cause: error });
    } finally {
      if (kept) this.#keptRunning--;
    }
  }

  /** Fetches from any address: for payloads that the server stores elsewhere. Our headers are not sent there. */
  fetch(url: URL, timeoutMs: number): Promise<Reply> {
    return this.#elsewhere.send({ url, method: "GET", timeoutMs, bytesMax: answerBytesMax });
  }

  async close(): Promise<void> {
    await Promise.all([this.#kept.destroy(), this.#burst.destroy(), this.#elsewhere.close()]);
  }

  #onFailure(error: unknown): void {
    if (!this.#http2 || !isHttp2Failure(error) || ++this.#http2Failures < http2FailuresMax) return;
    this.#http2 = false;
    const old = [this.#kept, this.#burst];
    this.#kept = this.#pool(keptConnectionsMax, keepAliveMs);
    this.#burst = this.#pool(burstConnectionsMax, burstKeepAliveMs);
    // Requests in progress there end normally.
    for (const pool of old) void pool.close().catch(() => {});
  }

  #pool(connections: number, keepAliveTimeout: number): Dispatcher {
    const { tls, proxy, connectTimeoutMs } = this.#settings;
    const secure = {
      timeout: connectTimeoutMs,
      ...(tls.ca === undefined ? {} : { ca: tls.ca }),
      ...(tls.cert === undefined ? {} : { cert: tls.cert }),
      ...(tls.key === undefined ? {} : { key: tls.key }),
      ...(tls.insecure === true ? { rejectUnauthorized: false } : {}),
    };
    const common = { connections, keepAliveTimeout, keepAliveMaxTimeout: keepAliveTimeout, maxResponseSize: answerBytesMax };
    // Through a proxy HTTP/1.1 is enough: its tunnel is the slow part.
    if (proxy !== undefined) return new this.#undici.ProxyAgent({ ...common, uri: proxy, requestTls: secure, proxyTls: secure });
    const allowH2 = this.#http2;
    const connect = this.#undici.buildConnector({ ...secure, allowH2 });
    const factory = (origin: URL, options: object) => this.#client(origin, options, connect);
    return new this.#undici.Pool(this.#origin, { ...common, allowH2, maxConcurrentStreams: streamsMax, factory });
  }

  /**
   * HTTP/1.1 carries one request at a time, because a response would wait behind a long poll; HTTP/2 carries many. The version is known
   * when the socket is connected.
   */
  #client(origin: URL, options: object, connector: buildConnector.connector): Dispatcher {
    const connect: buildConnector.connector = (target, callback) =>
      connector(target, (...result: Parameters<buildConnector.Callback>) => {
        const socket = result[1] as { alpnProtocol?: unknown } | null;
        if (socket?.alpnProtocol === "h2") client.pipelining = streamsMax;
        callback(...result);
      });
    const client: SingleClient = new this.#undici.Client(origin, { ...options, connect });
    return client;
  }
}

/** True when the connection ended before a response: the peer closed it while it was idle, or died. */
export function isClosedConnection(error: unknown): boolean {
  const code = codeOf(error instanceof LongshoreError ? error.cause : error);
  return code === "UND_ERR_SOCKET" || code === "ECONNRESET" || code === "EPIPE";
}

function isHttp2Failure(error: unknown): boolean {
  const message = error instanceof Error ? error.message : "";
  return (codeOf(error)?.startsWith("ERR_HTTP2") ?? false) || message.startsWith("HTTP/2");
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}
