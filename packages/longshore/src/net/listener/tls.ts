// The listener with TLS: the same connections as without TLS, after their handshake.
//
// ALPN chooses the version of HTTP. Clients that accept both get HTTP/1.1, which all our routes use; clients that offer only h2 are gRPC
// clients.

import { constants } from "node:crypto";
import type { Socket } from "node:net";
import { createSecureContext, createServer, type Server, type TLSSocket, type TlsOptions } from "node:tls";
import { LongshoreError } from "../../core/errors.ts";

/** PEM texts. */
export interface ServerTls {
  /** The certificate, followed by its chain. */
  cert: string | Buffer;
  key: string | Buffer;
}

export interface TlsListener {
  readonly server: Server;
  /** The number of handshakes in progress. */
  readonly handshakes: number;
  /** Disconnects the client with the oldest handshake; returns false when there is none. */
  cutHandshake(): boolean;
  /** Disconnects all clients that have not finished their handshake. */
  cutHandshakes(): void;
}

export interface TlsListenerOptions {
  tls: ServerTls;
  /** Options of node:net for the sockets. */
  sockets: TlsOptions & { noDelay?: boolean; keepAlive?: boolean; keepAliveInitialDelay?: number; allowHalfOpen?: boolean };
  handshakeMs: number;
  /** Returns false when there is no room for the connection; then the connection is closed already. */
  admit(socket: Socket): boolean;
  connected(socket: TLSSocket): void;
  /** Called when a handshake failed: a wrong protocol, or a client that does not trust our certificate. */
  failed(): void;
}

export function createTlsListener({ tls, sockets, handshakeMs, admit, connected, failed }: TlsListenerOptions): TlsListener {
  checkPair(tls);
  const server = createServer({
    ...{ ...sockets, ...tls, handshakeTimeout: handshakeMs },
    // A handshake takes a millisecond or more of the event loop. Without this, one connection could ask for any number of new handshakes.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ALPNCallback: ({ protocols }) => chosen(protocols),
  });
  /** The key is the address and port of the client: nothing else is the same for a socket and its TLS socket. */
  const handshaking = new Map<string, Socket>();
  server.on("connection", (socket: Socket) => {
    if (!admit(socket)) return;
    const key = placeOf(socket);
    handshaking.set(key, socket);
    socket.once("close", () => handshaking.delete(key));
  });
  server.on("secureConnection", (socket) => {
    handshaking.delete(placeOf(socket));
    connected(socket);
  });
  server.on("tlsClientError", (_error, socket) => {
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
