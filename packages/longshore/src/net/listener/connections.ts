// Which sockets are open and which exchanges are in progress on each. One listener a socket notifies every exchange on it that the client
// has disconnected, so that a request needs none of its own; and closing finds idle sockets, also those that never sent anything.

import type { Socket } from "node:net";
import type { Admission, Placed } from "./admission.ts";

/** What a connection knows of an exchange. */
export interface OnConnection extends Placed {
  clientGone(): void;
}

export class Connection {
  readonly socket: Socket;
  /** A request on it has passed the gate that not anyone passes. Until then the client is a stranger, who may as well be silent. */
  known = false;
  /** Lets the client go once nothing is under way; what was written before still leaves. */
  release: () => void;
  private current: OnConnection | undefined = undefined;
  /** Only for clients that pipeline. */
  private others: Set<OnConnection> | undefined = undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    this.release = () => socket.destroySoon();
  }

  get idle(): boolean {
    return this.current === undefined && (this.others === undefined || this.others.size === 0);
  }

  /** How many exchanges are under way. */
  get underWay(): number {
    return (this.current === undefined ? 0 : 1) + (this.others?.size ?? 0);
  }

  add(exchange: OnConnection): void {
    if (this.current === undefined) this.current = exchange;
    else {
      this.others ??= new Set();
      this.others.add(exchange);
    }
  }

  /** False when it had been removed before. */
  remove(exchange: OnConnection): boolean {
    if (this.current !== exchange) return this.others?.delete(exchange) ?? false;
    this.current = undefined;
    return true;
  }

  /** Empties the connection and answers what was in progress. */
  takeAll(): OnConnection[] {
    const all = [...(this.others ?? [])];
    if (this.current !== undefined) all.unshift(this.current);
    this.current = undefined;
    this.others = undefined;
    return all;
  }
}

export class Connections {
  private readonly open = new Map<Socket, Connection>();
  /** Those that were strangers when last looked at, the oldest first. */
  private readonly strangers = new Set<Connection>();
  private readonly admission: Admission;
  private draining = false;
  private emptied: (() => void) | undefined = undefined;
  /** Exchanges under way on all sockets. */
  inFlight = 0;

  constructor(admission: Admission) {
    this.admission = admission;
  }

  get size(): number {
    return this.open.size;
  }

  get closing(): boolean {
    return this.draining;
  }

  add(socket: Socket): Connection {
    const connection = new Connection(socket);
    this.open.set(socket, connection);
    this.strangers.add(connection);
    socket.once("close", () => {
      this.open.delete(socket);
      this.strangers.delete(connection);
      const interrupted = connection.takeAll();
      this.inFlight -= interrupted.length;
      for (const exchange of interrupted) {
        this.admission.leave(exchange);
        exchange.clientGone();
      }
      if (this.open.size === 0) this.emptied?.();
    });
    return connection;
  }

  /** Cuts the stranger who has been here longest, to make room; false when there is none. */
  cutStranger(): boolean {
    for (const connection of this.strangers) {
      this.strangers.delete(connection);
      if (connection.known) continue;
      // It counts no more, although it closes a little later.
      this.open.delete(connection.socket);
      connection.socket.destroy();
      return true;
    }
    return false;
  }

  of(socket: Socket): Connection | undefined {
    return this.open.get(socket);
  }

  begin(connection: Connection, exchange: OnConnection): void {
    connection.add(exchange);
    this.inFlight++;
  }

  /** To be called when an exchange has been answered in full; again is harmless. A closing server lets the socket go. */
  finish(connection: Connection, exchange: OnConnection): void {
    if (!connection.remove(exchange)) return;
    this.inFlight--;
    this.admission.leave(exchange);
    if (this.draining && connection.idle) connection.release();
  }

  /** Ends idle sockets now and the others as soon as they are answered; what was written before still leaves. */
  drain(): void {
    this.draining = true;
    for (const connection of [...this.open.values()]) if (connection.idle) connection.release();
  }

  /** Calls `fn` once no socket is open. */
  whenEmpty(fn: () => void): void {
    if (this.open.size === 0) fn();
    else this.emptied = fn;
  }

  destroyAll(): void {
    for (const socket of [...this.open.keys()]) socket.destroy();
  }
}
