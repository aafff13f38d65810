// Limits how much node:http parses in one turn of the event loop: by itself it parses everything that has arrived, up to 2 MB. This object
// is between the socket and the parser, and passes on the data in slices. When the connection has used its share of the turn, the rest
// waits for a later turn, and the socket is not read.
//
// Node pauses and resumes the socket too, when a body or a response is not consumed. So `pause` and `resume` only record what Node wants.
// Bytes flow while Node reads and the share is not used up.

import type { Socket } from "node:net";
import type { LoopTurns, Share } from "../../core/slices/loop-turns.ts";
import type { Connection } from "./connections.ts";

/** The size of a slice: most requests fit. It holds 150 of the shortest possible requests. */
const sliceBytes = 4_096;

export class SocketThrottle {
  readonly share: Share;
  readonly #socket: Socket;
  readonly #parse: (bytes: Buffer) => void;
  readonly #end: () => void;
  readonly #pause: () => void;
  readonly #resume: () => void;
  /** Data that has arrived but was not parsed. */
  #held: Buffer[] = [];
  /** True while Node wants to read. */
  #wanted = true;
  #parsing = false;
  #waits = false;
  #ended = false;

  /** `attach` lets node:http take the socket, which must have no listeners for data. */
  constructor(connection: Pick<Connection, "socket" | "known">, turns: LoopTurns, attach: () => void) {
    const { socket } = connection;
    this.#socket = socket;
    this.share = turns.share(
      () => this.#continue(),
      () => connection.known,
    );
    this.#pause = socket.pause.bind(socket);
    this.#resume = socket.resume.bind(socket);
    const endings = new Set(socket.listeners("end"));
    attach();
    this.#parse = stolen(socket, "data", new Set());
    this.#end = stolen(socket, "end", endings);
    socket.pause = () => this.#close();
    socket.resume = () => this.#open();
    socket.on("data", (bytes: Buffer) => this.take(bytes));
    socket.on("end", () => this.#endLater());
  }

  /** Takes the bytes that were read before node:http got the socket. They may contain so many requests that Node pauses the socket. */
  begin(bytes: Buffer): void {
    this.take(bytes);
    if (this.#wanted && this.#held.length === 0) this.#resume();
  }

  take(bytes: Buffer): void {
    if (this.#held.length > 0 || !this.#wanted) this.#hold(bytes);
    else this.#slices(bytes);
  }

  #slices(bytes: Buffer): void {
    const { share } = this;
    let at = 0;
    this.#parsing = true;
    while (at < bytes.length && this.#wanted && !share.used && this.#socket.writable) {
      // Most data that arrives is one slice.
      this.#parse(bytes.length <= sliceBytes ? bytes : bytes.subarray(at, at + sliceBytes));
      at += sliceBytes;
    }
    this.#parsing = false;
    if (at < bytes.length) this.#hold(bytes.subarray(at));
  }

  #hold(bytes: Buffer): void {
    // Once our side has ended, no more requests are processed.
    if (!this.#socket.writable) return;
    this.#held.push(bytes);
    this.#pause();
    if (this.#wanted) this.#later();
  }

  #later(): void {
    this.#waits = true;
    this.share.wait();
  }

  #continue(): void {
    this.#waits = false;
    const bytes = this.#held.length === 1 ? (this.#held[0] as Buffer) : Buffer.concat(this.#held);
    this.#held = [];
    this.#slices(bytes);
    if (this.#held.length > 0) return;
    if (this.#ended) this.#end.call(this.#socket);
    else if (this.#wanted) this.#resume();
  }

  #endLater(): void {
    if (this.#held.length === 0) this.#end.call(this.#socket);
    else this.#ended = true;
  }

  #close(): Socket {
    this.#wanted = false;
    this.#pause();
    return this.#socket;
  }

  #open(): Socket {
    this.#wanted = true;
    if (this.#parsing || this.#waits) return this.#socket;
    if (this.#held.length > 0) this.#later();
    else this.#resume();
    return this.#socket;
  }
}

/** Removes the listener that was added after `before` was recorded, and returns it. */
function stolen(socket: Socket, event: "data" | "end", before: ReadonlySet<unknown>): (this: Socket, bytes?: Buffer) => void {
  const listener = socket.listeners(event).find((each) => !before.has(each)) as (this: Socket, bytes?: Buffer) => void;
  socket.removeListener(event, listener);
  return listener;
}
