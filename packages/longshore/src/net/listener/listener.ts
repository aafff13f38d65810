// The listener: one port for every route group, with its limits, its access check and an orderly shutdown. A connection begins in direct.ts
// and may be handed over to node-http.ts; both process requests with dispatch.ts. An HTTP/2 connection is handed over to grpc.ts.

import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { ByteBudget } from "../../core/byte-budget.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import { isLoopback } from "../../core/loopback.ts";
import type { Metrics } from "../../core/metrics.ts";
import { LoopTurns } from "../../core/slices/loop-turns.ts";
import { Stalls } from "../../core/stalls.ts";
import type { Stopwatch } from "../../core/watchdog.ts";
import type { GrpcMethod } from "../grpc/service.ts";
import type { RouteGroup } from "../http/http.ts";
import { Admission } from "./admission.ts";
import { AnswerSlots } from "./answer-slots.ts";
import { type Auth, createAuth } from "./auth.ts";
import { Connections } from "./connections.ts";
import { createDirect } from "./direct.ts";
import { createDispatch } from "./dispatch.ts";
import { createGate } from "./gate.ts";
import { createGrpc } from "./grpc.ts";
import { type HttpLimits, httpLimits } from "./limits.ts";
import { createNodeHttp, hangUp } from "./node-http.ts";
import { createReplyWriter } from "./reply.ts";
import { createRouter } from "./router.ts";
import { SendBudget } from "./send-budget.ts";
import { createEventStreams } from "./sse.ts";
import { createTlsListener, type ServerTls, type TlsListener } from "./tls.ts";
import { createTraffic } from "./traffic.ts";
import { createUpgrades, type UpgradeRoute } from "./upgrade.ts";

export interface ListenOptions {
  /** The routes of every protocol on this port. */
  groups: readonly RouteGroup[];
  /** The gRPC methods on the same port. */
  methods?: readonly GrpcMethod[];
  /** Responds for paths that belong to no group, or to several. Default: the first group. */
  fallback?: RouteGroup;
  /** Default 127.0.0.1. Any address that is not loopback needs tokens or `insecure`. */
  host?: string;
  /** 0 takes any free port. */
  port: number;
  /** Serve only TLS on this port. */
  tls?: ServerTls;
  auth?: Auth;
  /** Hands over connections that ask for an upgrade on this path. Default: none. */
  upgrade?: UpgradeRoute;
  /** Web origins whose pages may call this server. Default: none. */
  origins?: readonly string[];
  /** Further accepted names in the Host header. */
  hosts?: readonly string[];
  /** Serve beyond loopback without authentication of callers. */
  insecure?: boolean;
  metrics: Metrics;
  logger: Logger;
  clock?: Clock;
  limits?: Partial<HttpLimits>;
  /** Is notified of requests that blocked the event loop for long. */
  watch?: Stopwatch;
}

export interface HttpServer {
  readonly host: string;
  /** The port in use, also when the option was 0. */
  readonly port: number;
  readonly url: string;
  /** The number of open sockets. */
  connections(): number;
  /**
   * Stops accepting connections, and lets running requests finish. Event streams and gRPC streams end after the data that they have
   * accepted. The remaining connections are cut after `deadlineMs`. Resolves when every socket is closed. A second call waits for the
   * first. Long polls are running requests: the owner of the waiters must answer them first.
   */
  close(deadlineMs?: number): Promise<void>;
}

export async function listen(options: ListenOptions): Promise<HttpServer> {
  const { metrics, logger, clock = systemClock, host = "127.0.0.1", auth = createAuth([]) } = options;
  const limits: HttpLimits = { ...httpLimits, ...options.limits };
  const [first] = options.groups;
  if (first === undefined) throw new TypeError("listen needs at least one route group.");
  refuseOpenDoor(host, auth, options.insecure ?? false);

  const places = new Admission(limits);
  const slots = new AnswerSlots();
  const connections = new Connections(places);
  const streams = createEventStreams(clock, limits);
  const router = createRouter(options.groups, options.fallback ?? first);
  const traffic = createTraffic(metrics, logger, clock, connections, router.entries);
  const sendingBytes = new ByteBudget(limits.sendingBytes);
  const sendStalls = new Stalls(clock, limits.sendStallMs);
  const receiveStalls = new Stalls(clock, limits.receiveStallMs, limits.receiveRate);
  const sending = new SendBudget(sendingBytes, sendStalls);
  const writer = createReplyWriter({ connections, streams, sending, logger, onUndelivered: traffic.undelivered });
  const gate = createGate({ auth, bound: host, hosts: options.hosts, origins: options.origins });
  const dispatch = createDispatch({ gate, connections, places, slots, writer, traffic, logger, limits, watch: options.watch });
  const receiving = new ByteBudget(limits.receivingBytes);
  metrics.sampled("gauge", "longshore_http_receiving_bytes", "Bytes of bodies and messages that are being received.", () => receiving.held);
  metrics.sampled("gauge", "longshore_http_sending_bytes", "Bytes of answers that their readers have not taken.", () => sendingBytes.held);
  const turns = new LoopTurns();
  const nodeHttp = createNodeHttp({ router, dispatch, connections, traffic, limits, receiving, stalls: receiveStalls, turns });
  const grpc = createGrpc({
    methods: options.methods ?? [],
    gate,
    connections,
    places,
    slots,
    traffic,
    logger,
    limits,
    clock,
    receiving,
    sending: sendingBytes,
    receiveStalls,
    sendStalls,
    turns,
    watch: options.watch,
  });
  const leaving = {
    handOver(socket: Socket, bytes: Buffer) {
      traffic.handedOver();
      nodeHttp.take(socket, bytes);
    },
    tooSlow(socket: Socket) {
      traffic.broken(408);
      hangUp(socket, 408);
    },
  };
  const { upgrade } = options;
  const upgrades = upgrade === undefined ? undefined : createUpgrades({ route: upgrade, connections, limits, clock, ...leaving });
  const serveDirectly = createDirect({
    ...{ router, dispatch, connections, limits, receiving, turns, upgrades },
    ...leaving,
    handOverHttp2: (socket, bytes) => grpc.take(socket, bytes),
  });

  const sockets = { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: limits.probeMs };
  /** A full server first disconnects a client that has not finished its handshake or has shown no valid token. */
  const admit = (socket: Socket): boolean => {
    if (connections.size + (secure?.handshakes ?? 0) < limits.connections) return true;
    traffic.broken("full");
    if (secure?.cutHandshake() || connections.cutStranger()) return true;
    socket.destroy();
    return false;
  };
  const secure: TlsListener | undefined =
    options.tls === undefined
      ? undefined
      : createTlsListener({
          ...{ tls: options.tls, sockets, clock, receiving, admit },
          ...{ handshakeMs: limits.headersMs, handshakesMax: limits.strangerSessions },
          // Turns of their own: requests on open connections do not wait behind thousands of handshakes.
          turns: new LoopTurns(),
          connected(socket) {
            if (socket.alpnProtocol !== "h2") return serveDirectly(socket);
            connections.add(socket);
            grpc.take(socket);
          },
          failed: () => traffic.broken("tls"),
          crowdedOut: () => traffic.broken("full"),
        });
  const server = secure?.server ?? createServer(sockets, (socket) => admit(socket) && serveDirectly(socket));
  await bind(server, host, options.port);

  const { port } = server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  return {
    host,
    port,
    url: `${secure === undefined ? "http" : "https"}://${urlHost(host)}:${port}`,
    connections: () => connections.size,
    close(deadlineMs = limits.closeMs) {
      closed ??= new Promise((resolve) => {
        const cancelDeadline = clock.at(clock.now() + deadlineMs, () => connections.destroyAll());
        const done = () => {
          cancelDeadline();
          sendStalls.stop();
          receiveStalls.stop();
          resolve();
        };
        // The listener closes slightly before the last socket reports its end.
        server.close(() => connections.whenEmpty(done));
        secure?.cutHandshakes();
        nodeHttp.close();
        streams.endAll();
        grpc.drain();
        connections.drain();
      });
      return closed;
    },
  };
}

/** The only rule that `insecure` disables. */
function refuseOpenDoor(host: string, auth: Auth, insecure: boolean): void {
  if (isLoopback(host) || auth.required || insecure) return;
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `Serving on ${host} without tokens would let everyone who can reach it run commands on your workers. ` +
      "Give tokens (--token, --token-file), stay on 127.0.0.1, or pass --insecure.",
    { detail: { field: "host", expected: "a loopback address, or tokens" } },
  );
}

/**
 * Connections that the system queues while this process is busy: a fleet of 5,000 workers connects at once when its server is back. Linux
 * queues at most `net.core.somaxconn`, 4,096 by default. Node requests 511 by default.
 */
const backlog = 8_192;

function bind(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => reject(bindError(error, host, port));
    server.once("error", onError);
    server.listen({ port, host, backlog }, () => {
      server.removeListener("error", onError);
      resolve();
    });
  });
}

function bindError(cause: NodeJS.ErrnoException, host: string, port: number): LongshoreError {
  const reasons: Record<string, string> = {
    EADDRINUSE: `Port ${port} on ${host} is in use. Stop the program that has it, or choose another with --port (0 takes any free one).`,
    EACCES: `Port ${port} on ${host} is not open to this user. Choose one above 1023 with --port.`,
    EADDRNOTAVAIL: `This machine has no address ${host}. Choose one of its own with --host, or 127.0.0.1.`,
  };
  const message = reasons[cause.code ?? ""] ?? `Cannot listen on ${host} port ${port}: ${cause.message}.`;
  return new LongshoreError("LONGSHORE_BAD_CONFIG", message, { cause, detail: { field: "port" } });
}

/** The address that a client on this machine would use. */
function urlHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
