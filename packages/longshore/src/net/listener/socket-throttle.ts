// Sits between a socket and the parser of node:http, which by itself takes all that has arrived, up to 2 MB, in one turn of the event loop.
// The parser gets what arrives in slices; when the connection has used its share of the turn the rest waits for a later one, and the
// socket is not read.
//
// Node pauses and resumes the socket too, where a body or an answer is not taken. So `pause` and `resume` of the socket only record the
// state that Node requests: bytes flow while Node reads and the share is not used.

import type { Socket } from "node:net";
import type { LoopTurns, Share } from "../../core/slices/loop-turns.ts";

/** What the parser gets at once: the whole of most requests. It holds 150 of the shortest requests that there are. */
const sliceBytes = 4_096;

export class SocketThrottle {
  readonly share: Share;
  readonly #socket: Socket;
  readonly #parse: (bytes: Buffer) => void;
  readonly #end: () => void;
  readonly #pause: () => void;
  readonly #resume: () => void;
  /** Came, and was not parsed. */
  #held: Buffer[] = [];
  /** Node is reading. */
  #wanted = true;
  #parsing = false;
  #waits = false;
  #ended = false;

  /** `attach` lets node:http take the socket, which must have no listeners for data. */
  constructor(socket: Socket, turns: LoopTurns, attach: () => void) {
    this.#socket = socket;
    this.share = turns.share(() => this.#continue());
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

  take(bytes: Buffer): void {
    if (this.#held.length > 0 || !this.#wanted) this.#hold(bytes);
    else this.#slices(bytes);
  }

  #slices(bytes: Buffer): void {
    const { share } = this;
    let at = 0;
    this.#parsing = true;
    while (at < bytes.length && this.#wanted && !share.used && this.#socket.writable) {
      // Most of what arrives is one slice.
      this.#parse(bytes.length <= sliceBytes ? bytes : bytes.subarray(at, at + sliceBytes));
      at += sliceBytes;
    }
    this.#parsing = false;
    if (at < bytes.length) this.#hold(bytes.subarray(at));
  }

  #hold(bytes: Buffer): void {
    // Once we have ended our side no request is answered any more.
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

/** Takes off the listener that was added beside those `before`, and returns it. */
function stolen(socket: Socket, event: "data" | "end", before: ReadonlySet<unknown>): (this: Socket, bytes?: Buffer) => void {
  const listener = socket.listeners(event).find((each) => !before.has(each)) as (this: Socket, bytes?: Buffer) => void;
  socket.removeListener(event, listener);
  return listener;
}
