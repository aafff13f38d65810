// `/metrics` and `/health` of a worker, for probes and collectors. On loopback by default: both contain task names and error texts.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { LongshoreError } from "../core/errors.ts";
import { isLoopback } from "../core/loopback.ts";
import { metricsContentType } from "../core/metrics.ts";
import { healthBody, type WorkerStatuses } from "./health.ts";

/** The address at which a worker serves `/metrics` and `/health`. */
export interface HttpOptions {
  /** 0 takes any free port. */
  readonly port: number;
  /** Default: 127.0.0.1. Probes of a container come from outside of it and need `0.0.0.0`. */
  readonly host?: string;
}

export interface Pages {
  readonly metrics: () => string | Promise<string>;
  readonly workers: () => WorkerStatuses;
}

export interface HttpHandle {
  readonly url: string;
  close(): Promise<void>;
}

/** The time limit of a request. Slower clients are not probes. */
const requestMsMax = 10_000;
/** There are only a few probes and scrapers. */
const connectionsMax = 100;

export async function serveWorker({ port, host = "127.0.0.1" }: HttpOptions, pages: Pages): Promise<HttpHandle> {
  const server = createServer(
    { requestTimeout: requestMsMax, keepAliveTimeout: requestMsMax, joinDuplicateHeaders: true },
    (request, response) => {
      const answered = isRebound(request, host) ? refuseName(request, response) : answer(request, response, pages);
      void answered.catch(() => response.destroy());
    },
  );
  server.maxConnections = connectionsMax;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => {
      const message = `The worker cannot serve /metrics and /health on ${host}:${port}: ${error.message}.`;
      reject(new LongshoreError("LONGSHORE_BAD_CONFIG", message, { cause: error, detail: { field: "http.port" } }));
    });
    server.listen({ port, host }, resolve);
  });
  // A later error concerns one connection, which is closed already.
  server.on("error", () => {});
  // The HTTP server does not keep a stopped worker alive.
  server.unref();
  const address = server.address() as AddressInfo;
  const name = address.family === "IPv6" ? `[${address.address}]` : address.address;
  return {
    url: `http://${name}:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Refuses DNS rebinding: a web page that uses a name which resolves to loopback. The Host header has this name. */
function isRebound({ headers }: IncomingMessage, bound: string): boolean {
  const name = (headers.host ?? "").replace(/:\d*$/, "");
  return isLoopback(bound) && !isLoopback(name);
}

async function refuseName(request: IncomingMessage, response: ServerResponse): Promise<void> {
  request.resume();
  send(response, 403, "text/plain", "This worker listens on loopback: call it localhost or by its address.\n");
}

async function answer(request: IncomingMessage, response: ServerResponse, pages: Pages): Promise<void> {
  request.resume();
  if (request.method !== "GET" && request.method !== "HEAD") return send(response, 405, "text/plain", "Only GET is allowed here.\n");
  const path = (request.url ?? "").split("?")[0];
  if (path === "/metrics") return send(response, 200, metricsContentType, await pages.metrics());
  if (path === "/health") {
    const body = healthBody(pages.workers());
    return send(response, body.status === "UP" ? 200 : 503, "application/json", `${JSON.stringify(body)}\n`);
  }
  send(response, 404, "text/plain", "Here are /metrics and /health.\n");
}

function send(response: ServerResponse, status: number, type: string, text: string): void {
  const body = Buffer.from(text);
  response.writeHead(status, { "content-type": type, "content-length": body.length, ...(status === 405 ? { allow: "GET, HEAD" } : {}) });
  // Node leaves out the body of a HEAD response automatically.
  response.end(body);
}
