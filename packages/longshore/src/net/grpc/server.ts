// Serves gRPC on sockets that it receives. The host decides who may call, what is counted and what an error means. One connection is in
// session.ts, one call in server-call.ts.
//
// Measured on two cores that the client shares (Node 20): a unary call takes 36 to 47 us of the server's CPU with 32 calls in flight, and
// 77 to 110 us with one call at a time. A thousand idle streams take 4 MB on one connection, and 46 MB on a connection each.
import type { Http2Server, ServerHttp2Session } from "node:http2";
import { createServer } from "node:http2";
import type { Socket } from "node:net";
import type { ByteBudget } from "../../core/byte-budget.ts";
import type { Clock } from "../../core/clock.ts";
import type { LoopTurns } from "../../core/slices/loop-turns.ts";
import type { Stalls } from "../../core/stalls.ts";
import { Turns } from "./inflate.ts";
import { type GrpcLimits, inflationsAtOnce, sessionMemoryMb, streamWindowBytes } from "./limits.ts";
import type { ServerCall } from "./server-call.ts";
import type { GrpcMethod } from "./service.ts";
import { GrpcSession } from "./session.ts";
import type { GrpcCode, GrpcError } from "./status.ts";

/** The server that owns the port, as gRPC uses it. */
export interface GrpcHost {
  /**
   * Called when a call begins. The returned function is called once, when the call is over: its response is complete, or the caller has
   * disconnected.
   */
  begin(call: ServerCall): (code: GrpcCode) => void;
  /**
   * Called before the body is read, to set the caller. Returns an error to refuse the call. `method` is absent when no method has that
   * name.
   */
  admit(call: ServerCall, method: GrpcMethod | undefined): GrpcError | undefined;
  /**
   * Called before a unary call with a request of `bytes` is handled. Returns undefined when it may run now; otherwise a promise that
   * resolves when it may.
   */
  enter?(call: ServerCall, method: GrpcMethod, bytes: number): Promise<void> | undefined;
  /** Called when the response is ready, or when the handler waits for an event; at least once for every unary call. */
  leave?(call: ServerCall): void;
  /** Converts an error that is not a GrpcError. */
  explain(error: unknown, call: ServerCall): GrpcError;
  /** Called when a request over HTTP/2 that is not gRPC was refused with this status. */
  refusedPlain(status: number, socket: Socket): void;
  /** Called when a connection was ended because it flooded the server. */
  flooded?(socket: Socket): void;
  /** Called when a connection of an unknown client was ended because there were too many of them. */
  crowdedOut?(): void;
  /** Called after a request was decoded and its handler called; `ms` is how long that blocked the event loop. */
  ran?(call: ServerCall, ms: number): void;
}

export interface GrpcServerOptions {
  methods: readonly GrpcMethod[];
  host: GrpcHost;
  clock: Clock;
  limits: GrpcLimits;
  /** The budget of all requests that are being received, decompressed; shared with the other receivers of the server. */
  receiving: ByteBudget;
  /** The budget of responses that their callers have not read yet. */
  sending: ByteBudget;
  /** End calls whose request, or whose response, makes no progress. */
  receiveStalls: Stalls;
  sendStalls: Stalls;
  /** Limits the work of connections in one turn of the event loop. */
  turns: LoopTurns;
}

export class GrpcServer {
  readonly clock: Clock;
  readonly limits: GrpcLimits;
  readonly host: GrpcHost;
  readonly receiving: ByteBudget;
  readonly sending: ByteBudget;
  readonly receiveStalls: Stalls;
  readonly sendStalls: Stalls;
  readonly turns: LoopTurns;
  /** Limits concurrent decompressions. */
  readonly inflations = new Turns(inflationsAtOnce);
  readonly #methods: ReadonlyMap<string, GrpcMethod>;
  readonly #http2: Http2Server;
  readonly #sessions = new Set<GrpcSession>();
  /** Sessions on which no call has been allowed for its token yet, the oldest first. */
  readonly #strangers = new Set<GrpcSession>();
  #draining = false;

  constructor(options: GrpcServerOptions) {
    const { methods, host, clock, limits } = options;
    this.receiving = options.receiving;
    this.sending = options.sending;
    this.receiveStalls = options.receiveStalls;
    this.sendStalls = options.sendStalls;
    this.turns = options.turns;
    this.clock = clock;
    this.limits = limits;
    this.host = host;
    this.#methods = new Map(methods.map((method) => [method.path, method]));
    if (this.#methods.size !== methods.length) throw new TypeError("Two gRPC methods have one path.");
    this.#http2 = createServer({
      maxSessionMemory: sessionMemoryMb,
      settings: {
        maxConcurrentStreams: limits.strangerStreams,
        initialWindowSize: streamWindowBytes,
        maxHeaderListSize: limits.headerBytes,
      },
    });
    // The session reports this error too, and handles it. Without a listener here, the error would end the process.
    this.#http2.on("sessionError", () => {});
    // Otherwise Node answers such a client in HTTP/1.0, and waits for it.
    this.#http2.on("unknownProtocol", (socket: Socket) => socket.destroy());
  }

  /**
   * Serves this socket from now on; `bytes` are received but not parsed yet. The socket must have no other listeners. When Node opens no
   * session, returns undefined and the socket is destroyed. With TLS, the client must have chosen `h2` in the handshake (RFC 9113, section
   * 3.2).
   */
  take(socket: Socket, bytes?: Buffer): GrpcSession | undefined {
    // A peer that ends its side of HTTP/2 has disconnected. If the socket stayed half-open, it would never close, and its calls would not
    // be notified.
    socket.allowHalfOpen = false;
    socket.setNoDelay(true);
    socket.pause();
    if (bytes !== undefined) socket.unshift(bytes);
    let taken: ServerHttp2Session | undefined;
    const opened = (session: ServerHttp2Session) => {
      taken = session;
    };
    this.#http2.once("session", opened);
    this.#http2.emit("connection", socket);
    if (taken === undefined) {
      this.#http2.off("session", opened);
      socket.destroy();
      return undefined;
    }
    const session = new GrpcSession(this, taken, socket, () => {
      this.#sessions.delete(session);
      this.#strangers.delete(session);
    });
    this.#sessions.add(session);
    this.#admit(session);
    if (this.#draining) session.drain();
    return session;
  }

  /** A call on this session was allowed for its token. */
  recognised(session: GrpcSession): void {
    this.#strangers.delete(session);
  }

  #admit(session: GrpcSession): void {
    this.#strangers.add(session);
    if (this.#strangers.size <= this.limits.strangerSessions) return;
    const [oldest] = this.#strangers;
    if (oldest === undefined) return;
    this.#strangers.delete(oldest);
    this.host.crowdedOut?.();
    oldest.socket.destroy();
  }

  find(path: string | undefined): GrpcMethod | undefined {
    return this.#methods.get(path ?? "");
  }

  /** Sends GOAWAY to every peer: streams end as unavailable, other calls may finish, and each connection closes after its last call. */
  drain(): void {
    this.#draining = true;
    for (const session of [...this.#sessions]) session.drain();
  }
}
