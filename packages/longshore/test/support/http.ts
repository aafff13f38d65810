// A listener under test on a free loopback port, and two ways to talk to it: by requests, and by bytes.

import { Agent, type IncomingHttpHeaders, request } from "node:http";
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { createLogger } from "../../src/core/logger.ts";
import { createMetrics, type Metrics } from "../../src/core/metrics.ts";
import type { Route, RouteGroup } from "../../src/net/http/http.ts";
import { type HttpServer, type ListenOptions, listen } from "../../src/net/listener/listener.ts";
import { TestClock } from "../../src/testing/clock.ts";

export interface TestServer extends HttpServer {
  readonly log: string[];
  readonly metrics: Metrics;
}

/** A group that refuses in JSON with its own name, so that a test sees which group has refused. */
export function groupOf(name: string, routes: readonly Route[]): RouteGroup {
  return {
    name,
    routes,
    refuse: (problem) => ({
      status: problem.status,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ group: name, kind: problem.kind, message: problem.message, code: problem.code, detail: problem.detail }),
    }),
  };
}

/** A route written as "METHOD /path". Default: for workers, and with a text body unless it is a GET. */
export function route(text: string, handle: Route["handle"], more: Partial<Route> = {}): Route {
  const [method, path] = text.split(" ") as [Route["method"], string];
  return {
    method,
    path,
    action: method === "GET" ? "task.look" : "task.report",
    body: method === "GET" ? "none" : "text",
    handle,
    ...more,
  };
}

/** Lets timers, sockets and promises have a turn. For loops that wait for a condition. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Listens with everything logged; closed at the end of the test. */
export async function startServer(options: Partial<ListenOptions> & { groups: readonly RouteGroup[] }): Promise<TestServer> {
  const log: string[] = [];
  const metrics = createMetrics();
  const logger = createLogger({ level: "debug", write: (line) => log.push(line), clock: { now: () => 0 } });
  const server = await listen({ port: 0, metrics, logger, ...options });
  onTestFinished(async () => {
    const closed = server.close(0);
    if (options.clock instanceof TestClock) await options.clock.advance(0);
    await closed;
  });
  return { ...server, log, metrics };
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** The two ways in which the server carries a request; what a client sees must not depend on it. */
export const carriers = ["directly", "by node:http"] as const;
export type Carrier = (typeof carriers)[number];

export interface CallOptions {
  method?: string;
  /** Default `directly`; whole and plain requests on kept connections are. */
  carried?: Carrier;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
}

/** One request on a connection of its own. */
export function call(url: string, options: CallOptions = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { method = "GET", headers = {}, body, carried = "directly" } = options;
    // A request that asks for `connection: close` is always handed over.
    const agent = new Agent({ keepAlive: carried === "directly" });
    const length: Record<string, string> = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    const sent = request(url, { method, headers: { ...length, ...headers }, agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => {
        agent.destroy();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString("utf8") });
      });
      response.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

export function callCarried(carried: Carrier): typeof call {
  return (url, options) => call(url, { carried, ...options });
}

/** A socket to the server, which is destroyed at the end of the test. `received` has the bytes so far. */
export class RawClient {
  readonly socket: Socket;
  received = "";
  private readonly changed = new Set<() => void>();
  private ended = false;

  constructor(server: HttpServer) {
    this.socket = connect(server.port, server.host);
    this.socket.on("data", (chunk: Buffer) => {
      this.received += chunk.toString("latin1");
      this.notify();
    });
    // In some tests the server must cut the connection; they look at `closed`.
    this.socket.on("error", () => undefined);
    this.socket.on("close", () => {
      this.ended = true;
      this.notify();
    });
    onTestFinished(() => {
      this.socket.destroy();
    });
  }

  send(bytes: string): this {
    this.socket.write(bytes, "latin1");
    return this;
  }

  /** Waits until `text` has arrived. Fails when the socket closes before. */
  async until(text: string): Promise<string> {
    while (!this.received.includes(text)) {
      if (this.ended)
        throw new Error(`The connection closed before ${JSON.stringify(text)} came; received ${JSON.stringify(this.received)}.`);
      await this.change();
    }
    return this.received;
  }

  /** Everything that came until the server closed the connection. */
  async closed(): Promise<string> {
    while (!this.ended) await this.change();
    return this.received;
  }

  private change(): Promise<void> {
    return new Promise((resolve) => {
      const once = () => {
        this.changed.delete(once);
        resolve();
      };
      this.changed.add(once);
    });
  }

  private notify(): void {
    for (const resolve of [...this.changed]) resolve();
  }
}

export interface Latch<T> {
  readonly opened: Promise<T>;
  open(value: T): void;
}

/** A promise that the test settles. */
export function latch<T = void>(): Latch<T> {
  let open: (value: T) => void = () => undefined;
  const opened = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
