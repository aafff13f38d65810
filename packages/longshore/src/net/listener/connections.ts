// The open sockets, and the exchanges (requests with their responses) in progress on each. One listener per socket notifies all its exchanges when the client disconnects,
// so a request needs no listener of its own. Closing the server finds idle sockets, including those that never sent anything.

import type { Socket } from "node:net";
import type { Admission, Placed } from "./admission.ts";

/** An exchange, as its connection sees it. */
export interface OnConnection extends Placed {
  clientGone(): void;
}

export class Connection {
  readonly socket: Socket;
  /**
   * True after a request on this connection has passed the access check of an action that is not for `anyone` (`core/actions.ts`). Until then
   * the client counts as a stranger: it may never send anything useful.
   */
  known = false;
  /** Closes the connection once no exchange is in progress; data that was written before is still sent. */
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

  /** The number of exchanges in progress. */
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

  /** Returns false when it had been removed before. */
  remove(exchange: OnConnection): boolean {
    if (this.current !== exchange) return this.others?.delete(exchange) ?? false;
    this.current = undefined;
    return true;
  }

  /** Removes and returns all exchanges in progress. */
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
  /** Connections that were strangers at the last check, the oldest first. */
  private readonly strangers = new Set<Connection>();
  private readonly admission: Admission;
  private draining = false;
  private emptied: (() => void) | undefined = undefined;
  /** The number of exchanges in progress on all sockets. */
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

  /** Disconnects the oldest stranger to make room; returns false when there is none. */
  cutStranger(): boolean {
    for (const connection of this.strangers) {
      this.strangers.delete(connection);
      if (connection.known) continue;
      // The connection does not count any more, although it closes a little later.
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

  /** Must be called when an exchange is complete; calling it again has no effect. When the server closes, the socket is closed too. */
  finish(connection: Connection, exchange: OnConnection): void {
    if (!connection.remove(exchange)) return;
    this.inFlight--;
    this.admission.leave(exchange);
    if (this.draining && connection.idle) connection.release();
  }

  /** Ends idle sockets now and the others as soon as their responses are complete; data that was written before is still sent. */
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
