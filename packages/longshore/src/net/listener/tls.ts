// The listener with TLS: the same connections as without TLS, after their handshake.
//
// ALPN chooses the version of HTTP. Clients that accept both get HTTP/1.1, which all our routes use; clients that offer only h2 are gRPC
// clients.
//
// OpenSSL answers a ClientHello with a key and a signature, in one piece: 0.3 to 0.5 ms with usual certificates. Thousands of clients may send
// theirs in the same moment, without a token. So OpenSSL gets a connection once its ClientHello is here completely, and only a few in one turn
// of the event loop.

import { constants } from "node:crypto";
import { createServer, type Server, type ServerOpts, type Socket } from "node:net";
import { createSecureContext, createServer as createTlsServer, type TLSSocket } from "node:tls";
import type { ByteBudget } from "../../core/byte-budget.ts";
import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { LoopTurns } from "../../core/slices/loop-turns.ts";
import { servedExchanges } from "../key-exchanges.ts";
import { awaitHello } from "./awaited-hello.ts";

/** PEM texts. */
export interface ServerTls {
  /** The certificate, followed by its chain. */
  cert: string | Buffer;
  key: string | Buffer;
}

export interface TlsListener {
  readonly server: Server;
  /** The number of handshakes in progress, with those of clients that have sent nothing yet. */
  readonly handshakes: number;
  /** Disconnects the client with the oldest handshake; returns false when there is none. */
  cutHandshake(): boolean;
  /** Disconnects all clients that have not finished their handshake. */
  cutHandshakes(): void;
}

export interface TlsListenerOptions {
  tls: ServerTls;
  /** Options of node:net for the sockets. */
  sockets: ServerOpts;
  /** The time limit for the first message of a client, and again for the rest of its handshake. */
  handshakeMs: number;
  /** How many handshakes may be in progress after that message. A further one disconnects the oldest. */
  handshakesMax: number;
  clock: Clock;
  /** The budget for messages of clients that wait for their turn. */
  receiving: ByteBudget;
  turns: LoopTurns;
  /** Returns false when there is no room for the connection; then the connection is closed already. */
  admit(socket: Socket): boolean;
  connected(socket: TLSSocket): void;
  /** Called when a handshake failed: a wrong protocol, or a client that does not trust our certificate. */
  failed(): void;
  /** Called when a handshake was ended because there were too many. */
  crowdedOut(): void;
}

export function createTlsListener(options: TlsListenerOptions): TlsListener {
  const { tls, sockets, handshakeMs, handshakesMax, clock, receiving, turns, admit, connected, failed, crowdedOut } = options;
  checkPair(tls);
  const secure = createTlsServer({
    ...{ ...tls, handshakeTimeout: handshakeMs, ecdhCurve: servedExchanges },
    // A handshake takes a millisecond or more of the event loop. Without this, one connection could ask for any number of new handshakes.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ALPNCallback: ({ protocols }) => chosen(protocols),
  });
  /** The key is the address and port of the client, which a socket and its TLS socket have in common. */
  const handshaking = new Map<string, Socket>();
  /** The connections that OpenSSL has, the oldest first. */
  const begun = new Map<string, Socket>();
  const begin = (socket: Socket) => {
    begun.set(placeOf(socket), socket);
    const [oldest] = begun;
    if (begun.size > handshakesMax && oldest !== undefined) {
      begun.delete(oldest[0]);
      crowdedOut();
      oldest[1].destroy();
    }
    secure.emit("connection", socket);
  };
  const server = createServer(sockets, (socket) => {
    if (!admit(socket)) return;
    const key = placeOf(socket);
    handshaking.set(key, socket);
    socket.once("close", () => {
      handshaking.delete(key);
      begun.delete(key);
    });
    const failedEarly = () => {
      failed();
      socket.destroy();
    };
    awaitHello(socket, { clock, receiving, turns, patienceMs: handshakeMs, came: () => begin(socket), failed: failedEarly });
  });
  secure.on("secureConnection", (socket) => {
    const key = placeOf(socket);
    handshaking.delete(key);
    begun.delete(key);
    connected(socket);
  });
  secure.on("tlsClientError", (_error, socket) => {
    failed();
    socket.destroy();
  });
  return {
    server,
    get handshakes() {
      return handshaking.size;
    },
    cutHandshake() {
      for (const [key, socket] of handshaking) {
        handshaking.delete(key);
        socket.destroy();
        return true;
      }
      return false;
    },
    cutHandshakes() {
      for (const socket of [...handshaking.values()]) socket.destroy();
    },
  };
}

/** Returns undefined when no protocol fits: the handshake then fails with the matching alert. */
function chosen(protocols: readonly string[]): string | undefined {
  return ["http/1.1", "h2"].find((protocol) => protocols.includes(protocol));
}

function placeOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}

/** A wrong pair fails the start instead of the first client. */
function checkPair({ cert, key }: ServerTls): void {
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    const message = `The certificate and its key cannot be used: ${(cause as Error).message}.`;
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, {
      cause,
      detail: { field: "tls", expected: "a certificate and its key, as PEM" },
    });
  }
}
