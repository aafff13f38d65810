// One HTTP/2 connection and its calls. Calls beyond its share of a turn begin in a later turn (waiting-streams.ts). A client that floods
// the server is disconnected (flood.ts).
import { constants, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { pieceUnits, requestUnits, type Share } from "../../core/slices/loop-turns.ts";
import { endEarly } from "./call-answer.ts";
import { Flood } from "./flood.ts";
import { KeepAlive } from "./keep-alive.ts";
import { sessionWindowBytes } from "./limits.ts";
import type { GrpcServer } from "./server.ts";
import { ServerCall } from "./server-call.ts";
import { GrpcCode, GrpcError } from "./status.ts";
import { WaitingStreams } from "./waiting-streams.ts";

/** The work of opening a connection, in units of LoopTurns: about 240 us. */
const sessionUnits = 10 * requestUnits;

export class GrpcSession {
  readonly peer: string;
  readonly socket: Socket;
  readonly #server: GrpcServer;
  readonly #session: ServerHttp2Session;
  readonly #keepAlive: KeepAlive;
  readonly #calls = new Set<ServerCall>();
  readonly #share: Share;
  readonly #waiting: WaitingStreams;
  readonly #flood: Flood;
  #idleSince: number;
  #isKnown = false;
  #draining = false;

  constructor(server: GrpcServer, session: ServerHttp2Session, socket: Socket, closed: () => void) {
    const { clock, limits } = server;
    this.#server = server;
    this.#session = session;
    this.#share = server.turns.share(
      () => this.#waiting.continue(this.#share),
      () => this.#isKnown,
    );
    this.#share.spend(sessionUnits);
    this.#flood = new Flood(server.turns, () => this.#calm());
    this.#waiting = new WaitingStreams({
      begin: (stream, headers) => this.#begin(stream, headers),
      came: (bytes) => this.heard(bytes),
      reset: () => this.#resetEarly(),
    });
    this.#idleSince = clock.now();
    this.socket = socket;
    this.peer = `${socket.remoteAddress}:${socket.remotePort}`;
    this.#keepAlive = new KeepAlive(session, {
      ...{ clock, pingMs: limits.pingMs, pingTimeoutMs: limits.pingTimeoutMs },
      tick: () => this.#tick(),
      lost: () => socket.destroy(),
    });
    session.setLocalWindowSize(sessionWindowBytes);
    session.on("stream", (stream, headers) => this.#accept(stream, headers));
    // A peer violated the protocol: the session and its streams close next, and each call is notified.
    session.on("error", () => {});
    session.once("close", () => {
      this.#keepAlive.stop();
      closed();
    });
  }

  /** A call was allowed for its token: this client may have more of them at once. Calling it again has no effect. */
  recognise(): void {
    if (this.#isKnown || this.#session.destroyed) return;
    this.#isKnown = true;
    this.#server.recognised(this);
    this.#session.settings({ maxConcurrentStreams: this.#server.limits.streams });
  }

  /** Sends GOAWAY, ends streams, and closes the connection after the last call. Calling it again has no effect. */
  drain(): void {
    this.#draining = true;
    if (!this.#session.destroyed) this.#session.close();
    for (const call of [...this.#calls]) call.dismiss();
  }

  #accept(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    // A stream that fails closes next, and its call is notified by the close. A stream that was reset together with its own headers has
    // already closed: no caller waits, and a response would throw.
    stream.on("error", () => {});
    if (stream.destroyed || stream.closed) return this.#resetEarly();
    if (this.#waiting.size === 0 && !this.#share.used) return this.#begin(stream, headers);
    this.#waiting.add(stream, headers);
    this.#share.wait();
  }

  #begin(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    this.#share.spend(requestUnits);
    const plain = refusePlain(headers);
    if (plain !== undefined) {
      this.#server.host.refusedPlain(plain, this.socket);
      stream.on("data", (piece: Buffer) => this.heard(piece.length));
      return answerPlain(stream, plain);
    }
    const call = new ServerCall(this.#server, this, stream, headers);
    this.#calls.add(call);
    call.begin();
    if (this.#draining) call.dismiss();
  }

  /** A piece of a message has arrived. */
  heard(bytes: number): void {
    this.#keepAlive.heard();
    this.#share.spend(pieceUnits);
    this.#flood.piece(bytes);
  }

  #resetEarly(): void {
    // When the connection ends, its streams close with it.
    if (this.#session.destroyed) return;
    this.#share.spend(pieceUnits);
    this.#flood.reset();
  }

  /** Ends a connection that floods the server (RFC 9113, section 10.5). */
  #calm(): void {
    if (this.#session.destroyed) return;
    this.#server.host.flooded?.(this.socket);
    this.#session.destroy(new Error("The client floods the server."), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  finished(call: ServerCall): void {
    this.#calls.delete(call);
    if (this.#calls.size === 0) this.#idleSince = this.#server.clock.now();
  }

  /** Checks for slow calls and idle clients; returns false when there is no client left to ping. */
  #tick(): boolean {
    const { clock, limits } = this.#server;
    const now = clock.now();
    if (this.#calls.size + this.#waiting.size === 0 && now - this.#idleSince >= limits.idleMs) {
      this.drain();
      return false;
    }
    for (const call of this.#calls) {
      if (now - call.receivingSince < limits.requestMs) continue;
      call.refuse(new GrpcError(GrpcCode.DEADLINE_EXCEEDED, "The request did not arrive in time."));
    }
    return true;
  }
}

const grpcType = /^application\/grpc(\+proto)?( *;.*)?$/;

/** The HTTP status for a request that is not a gRPC call; undefined for a gRPC call. */
function refusePlain(headers: IncomingHttpHeaders): number | undefined {
  if (!grpcType.test(headers["content-type"] ?? "")) return 415;
  return headers[":method"] === "POST" ? undefined : 405;
}

function answerPlain(stream: ServerHttp2Stream, status: number): void {
  const text =
    status === 415
      ? "Over HTTP/2 this server speaks gRPC only; everything else is there over HTTP/1.1.\n"
      : "gRPC calls are POST requests.\n";
  stream.respond({ ":status": status, "content-type": "text/plain; charset=utf-8" });
  stream.end(text);
  endEarly(stream);
}
