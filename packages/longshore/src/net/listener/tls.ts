// The listener with TLS: the same connections as without, once their handshake is done.
//
// Both versions of HTTP are spoken, chosen by ALPN. Clients that take either get HTTP/1.1, which all our routes are made for; those that
// offer h2 alone are gRPC clients.

import type { Socket } from "node:net";
import { createSecureContext, createServer, type Server, type TLSSocket, type TlsOptions } from "node:tls";
import { LongshoreError } from "../../core/errors.ts";

/** PEM texts. */
export interface ServerTls {
  /** The certificate, followed by those that vouch for it. */
  cert: string | Buffer;
  key: string | Buffer;
}

export interface TlsListener {
  readonly server: Server;
  /** Handshakes under way. */
  readonly handshakes: number;
  /** Cuts the client that has been at its handshake longest; false when there is none. */
  cutHandshake(): boolean;
  /** Cuts clients that have not finished their handshake: nothing was promised to them. */
  cutHandshakes(): void;
}

export interface TlsListenerOptions {
  tls: ServerTls;
  /** Options of node:net for the sockets. */
  sockets: TlsOptions & { noDelay?: boolean; keepAlive?: boolean; keepAliveInitialDelay?: number; allowHalfOpen?: boolean };
  handshakeMs: number;
  /** Returns false for a connection that there is no room for, which it has ended. */
  admit(socket: Socket): boolean;
  connected(socket: TLSSocket): void;
  /** A handshake failed: a wrong protocol, a client that does not trust us. */
  failed(): void;
}

export function createTlsListener({ tls, sockets, handshakeMs, admit, connected, failed }: TlsListenerOptions): TlsListener {
  checkPair(tls);
  const server = createServer({ ...sockets, ...tls, handshakeTimeout: handshakeMs, ALPNCallback: ({ protocols }) => chosen(protocols) });
  /** By address and port of the client: the one thing that a socket and the TLS on it have in common. */
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

/** None fits: the handshake fails with the alert for that. */
function chosen(protocols: readonly string[]): string | undefined {
  return ["http/1.1", "h2"].find((protocol) => protocols.includes(protocol));
}

function placeOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}

/** Reported at the start, and not to the first client. */
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
