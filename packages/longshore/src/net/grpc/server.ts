// Serves gRPC on sockets that are handed over. The host decides who may call, what is counted and what an error means; what happens
// on one connection is in session.ts, to one call in server-call.ts.
//
// Measured on two cores that the client shares (Node 20, decoding and the gate included): a unary call costs the server 36 to 47 us of CPU
// with 32 in flight and 77 to 110 us one at a time, most of it in node:http2; the client 55 to 69 and 100 to 145 us. A thousand idle
// streams take 4 MB on one connection, and 46 MB on a connection each.
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

/** The server that owns the port, as gRPC needs it. */
export interface GrpcHost {
  /** A call has begun. What is answered is called once, when it is over: answered in full, or the caller has gone. */
  begin(call: ServerCall): (code: GrpcCode) => void;
  /** Called before the body is read, to set the caller. Returns the refusal, if any. `method` is absent when there is none of that name. */
  admit(call: ServerCall, method: GrpcMethod | undefined): GrpcError | undefined;
  /** A unary call, with a request of so many bytes, is about to be handled. Undefined when it may; else it resolves when its turn has come. */
  enter?(call: ServerCall, method: GrpcMethod, bytes: number): Promise<void> | undefined;
  /** Its answer is made, or it waits for something else to happen. Called for every unary call, and perhaps again. */
  leave?(call: ServerCall): void;
  /** What an error that is no GrpcError means for the caller. */
  explain(error: unknown, call: ServerCall): GrpcError;
  /** A request over HTTP/2 that is no gRPC was refused with this status. */
  refusedPlain(status: number, socket: Socket): void;
  /** A connection was ended because it flooded the server. */
  flooded?(socket: Socket): void;
  /** A request was taken apart and its handler was called, which ran this long without a pause. */
  ran?(call: ServerCall, ms: number): void;
}

export interface GrpcServerOptions {
  methods: readonly GrpcMethod[];
  host: GrpcHost;
  clock: Clock;
  limits: GrpcLimits;
  /** For all requests that are being received, unpacked; shared with whatever else receives. */
  receiving: ByteBudget;
  /** The same for answers that their callers have not taken. */
  sending: ByteBudget;
  /** End calls whose request, or whose answer, makes no progress. */
  receiveStalls: Stalls;
  sendStalls: Stalls;
  /** What connections may do in one turn of the event loop. */
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
  /** Messages that are being unpacked. */
  readonly inflations = new Turns(inflationsAtOnce);
  readonly #methods: ReadonlyMap<string, GrpcMethod>;
  readonly #http2: Http2Server;
  readonly #sessions = new Set<GrpcSession>();
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
      settings: { maxConcurrentStreams: limits.streams, initialWindowSize: streamWindowBytes, maxHeaderListSize: limits.headerBytes },
    });
    // The session reports it too, and handles it there; without a listener here it would end the process.
    this.#http2.on("sessionError", () => {});
  }

  /** Serves this socket from now on; `bytes` are received and not read yet. No listener may be left on it. */
  take(socket: Socket, bytes?: Buffer): GrpcSession {
    // A peer that ends its side of HTTP/2 has disconnected. Half-open, the socket would never close, and its calls would not be notified.
    socket.allowHalfOpen = false;
    socket.setNoDelay(true);
    socket.pause();
    if (bytes !== undefined) socket.unshift(bytes);
    let taken: ServerHttp2Session | undefined;
    this.#http2.once("session", (session) => {
      taken = session;
    });
    this.#http2.emit("connection", socket);
    const session = new GrpcSession(this, taken as ServerHttp2Session, socket, () => this.#sessions.delete(session));
    this.#sessions.add(session);
    if (this.#draining) session.drain();
    return session;
  }

  find(path: string | undefined): GrpcMethod | undefined {
    return this.#methods.get(path ?? "");
  }

  /** Sends GOAWAY to every peer: streams end as unavailable, other calls may finish, and each connection closes after its last. */
  drain(): void {
    this.#draining = true;
    for (const session of [...this.#sessions]) session.drain();
  }
}
