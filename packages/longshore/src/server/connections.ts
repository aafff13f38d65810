// Which sockets are open and what is under way on each. One listener a socket tells every exchange on it that the client has gone, so
// that a request needs none of its own; and closing knows which sockets are idle, also those that never sent anything.

import type { Socket } from "node:net";

/** What a connection knows of an exchange. */
export interface OnConnection {
  clientGone(): void;
}

export class Connection {
  readonly socket: Socket;
  /** Several only when the client pipelines. */
  readonly active = new Set<OnConnection>();

  constructor(socket: Socket) {
    this.socket = socket;
  }
}

export class Connections {
  private readonly open = new Map<Socket, Connection>();
  private draining = false;
  /** Exchanges under way on all sockets. */
  inFlight = 0;

  get size(): number {
    return this.open.size;
  }

  get closing(): boolean {
    return this.draining;
  }

  add(socket: Socket): void {
    const connection = new Connection(socket);
    this.open.set(socket, connection);
    socket.once("close", () => {
      this.open.delete(socket);
      const active = [...connection.active];
      this.inFlight -= active.length;
      connection.active.clear();
      for (const exchange of active) exchange.clientGone();
    });
  }

  of(socket: Socket): Connection | undefined {
    return this.open.get(socket);
  }

  begin(connection: Connection, exchange: OnConnection): void {
    connection.active.add(exchange);
    this.inFlight++;
  }

  /** To be called when an exchange has been answered in full; again is harmless. A closing server lets the socket go. */
  finish(connection: Connection, exchange: OnConnection): void {
    if (!connection.active.delete(exchange)) return;
    this.inFlight--;
    if (this.draining && connection.active.size === 0) connection.socket.destroySoon();
  }

  /** Ends idle sockets now and the others as soon as they are answered; what was written before still leaves. */
  drain(): void {
    this.draining = true;
    for (const connection of this.open.values()) if (connection.active.size === 0) connection.socket.destroySoon();
  }

  destroyAll(): void {
    for (const socket of [...this.open.keys()]) socket.destroy();
  }
}
