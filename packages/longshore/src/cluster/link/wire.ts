// One end of a link: a socket with frames in both directions. Gathers what is sent in one turn of the event loop, sends pings, and cuts a
// link on which nothing arrives. A frame may have thousands of messages, each of which is a request of a client. So only some are delivered
// in each turn, and meanwhile the socket is not read.

import type { Socket } from "node:net";
import type { Clock } from "../../core/clock.ts";
import { type LoopTurns, requestUnits, type Share } from "../../core/slices/loop-turns.ts";
import { BadFrame, FrameReader, framesOf } from "./frames.ts";
import type { LinkLimits } from "./limits.ts";

/** Bytes of all links of one client or server, including those that have ended. */
export interface WireCounts {
  bytesIn: number;
  bytesOut: number;
}

export interface WireEvents {
  /** A message arrived. Throws a BadFrame for one that the other side may not send. */
  message(message: readonly unknown[]): void;
  /** The link is over. Called once. */
  broken(reason: string): void;
}

export interface WireOptions {
  readonly clock: Clock;
  readonly limits: LinkLimits;
  readonly counts: WireCounts;
  /** Limits the messages that all links of a node deliver in one turn of the event loop. */
  readonly turns: LoopTurns;
  /** Maximum number of bytes that wait until the other side reads them. Above it, the link is cut. */
  readonly sendingBytesMax: number;
}

export class Wire {
  readonly socket: Socket;
  readonly #clock: Clock;
  readonly #limits: LinkLimits;
  readonly #counts: WireCounts;
  readonly #sendingBytesMax: number;
  readonly #reader: FrameReader;
  readonly #share: Share;
  #events: WireEvents;
  /** Messages that have arrived. The first `#delivered` of them were delivered. */
  #arrived: unknown[] = [];
  #delivered = 0;
  /** Why the link is cut after the messages that wait; undefined while more may arrive. */
  #over: string | undefined;
  #texts: string[] = [];
  /** The characters of `#texts`. */
  #textChars = 0;
  #scheduled = false;
  #broken = false;
  /** True when something arrived since the last ping. */
  #heard = false;
  /** How many ping intervals have passed since something arrived. */
  #quiet = 0;
  #stopPings: (() => void) | undefined;

  constructor(socket: Socket, options: WireOptions, events: WireEvents) {
    this.socket = socket;
    this.#clock = options.clock;
    this.#limits = options.limits;
    this.#counts = options.counts;
    this.#sendingBytesMax = options.sendingBytesMax;
    this.#events = events;
    this.#reader = new FrameReader(options.limits.strangerBytes);
    this.#share = options.turns.share(() => this.#continue());
    socket.setNoDelay(true);
    socket.on("data", this.#onData);
    socket.on("end", () => this.#cutLast("The other side closed the connection."));
    socket.on("error", (error) => this.cut(`The connection failed: ${error.message}.`));
    socket.on("close", () => this.#cutLast("The connection closed."));
    socket.resume();
  }

  get broken(): boolean {
    return this.#broken;
  }

  /** Both sides have proved who they are: from now on messages of any allowed size are accepted, and pings are sent. */
  establish(events: WireEvents): void {
    this.#events = events;
    this.#reader.bytesMax = this.#limits.frameBytes;
    this.#armPing();
  }

  /** Bytes that arrived with the upgrade. */
  unshift(head: Buffer): void {
    if (head.length > 0) this.#onData(head);
  }

  /** Sends a message, which is JSON already, with all others of this turn. */
  send(text: string): void {
    if (this.#broken) return;
    this.#texts.push(text);
    this.#textChars += text.length;
    if (this.#textChars > this.#sendingBytesMax) return this.cut(tooSlow(this.#sendingBytesMax));
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#flush);
  }

  /** Sends what waits, and then ends the link. The other side must close, too. */
  end(reason: string): void {
    if (this.#broken) return;
    if (this.#texts.length > 0) this.#write();
    this.socket.end();
    this.#finish(reason);
    this.socket.destroySoon();
  }

  cut(reason: string): void {
    if (this.#broken) return;
    this.#finish(reason);
    this.socket.destroy();
  }

  /** The other side has ended the link properly. What it has sent before counts, such as the replies of an owner that hands the data over. */
  #cutLast(reason: string): void {
    if (this.#arrived.length === 0) this.cut(reason);
    else this.#over ??= reason;
  }

  #finish(reason: string): void {
    this.#broken = true;
    this.#texts = [];
    this.#arrived = [];
    this.#stopPings?.();
    this.#events.broken(reason);
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#broken) return;
    this.#heard = true;
    this.#counts.bytesIn += chunk.length;
    this.#unlessBad(() => {
      this.#reader.take(chunk, (messages) => {
        for (const message of messages) this.#arrived.push(message);
      });
      this.#deliver();
    });
  };

  /** The turn of this link has come. Its socket is still paused. */
  #continue(): void {
    if (this.#broken) return;
    // While the socket is paused, the other side is not silent.
    this.#heard = true;
    this.#unlessBad(() => this.#deliver());
    if (this.#broken || this.#arrived.length > 0) return;
    if (this.#over === undefined) this.socket.resume();
    else this.cut(this.#over);
  }

  #deliver(): void {
    while (this.#delivered < this.#arrived.length) {
      if (this.#share.used) {
        this.socket.pause();
        return this.#share.wait();
      }
      this.#share.spend(requestUnits);
      const message = this.#arrived[this.#delivered++];
      if (!Array.isArray(message)) throw new BadFrame("A message is not an array.");
      this.#events.message(message);
      // A message may end the link. Then the messages after it are ignored.
      if (this.#broken) return;
    }
    this.#arrived = [];
    this.#delivered = 0;
  }

  /** Cuts the link when the other side has sent what is not valid. */
  #unlessBad(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error;
      this.cut(`The link sent what is no message of ours. ${error.message}`);
    }
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    if (this.#broken || this.#texts.length === 0) return;
    this.#write();
    if (this.socket.writableLength <= this.#sendingBytesMax) return;
    this.cut(tooSlow(this.#sendingBytesMax));
  };

  #write(): void {
    const texts = this.#texts;
    this.#texts = [];
    this.#textChars = 0;
    const frames = framesOf(texts, this.#limits.frameChars);
    if (frames.length > 1) this.socket.cork();
    for (const frame of frames) {
      this.#counts.bytesOut += frame.length;
      this.socket.write(frame);
    }
    if (frames.length > 1) this.socket.uncork();
  }

  #armPing(): void {
    this.#stopPings = this.#clock.at(this.#clock.now() + this.#limits.pingMs, () => {
      // Counts intervals instead of reading the clock. So after a pause of this process, bytes that arrived meanwhile are read first.
      this.#quiet = this.#heard ? 0 : this.#quiet + 1;
      this.#heard = false;
      const { quietPings, pingMs } = this.#limits;
      if (this.#quiet >= quietPings) return this.cut(`Nothing arrived on the link for ${quietPings * pingMs} ms.`);
      // A ping is an empty frame. It is not needed while other bytes wait to be sent.
      if (this.socket.writableLength === 0) this.#ping();
      this.#armPing();
    });
  }

  #ping(): void {
    const [frame] = framesOf([], 0) as [Buffer];
    this.#counts.bytesOut += frame.length;
    this.socket.write(frame);
  }
}

/** Why a link is cut whose other side does not read. */
export function tooSlow(bytesMax: number): string {
  return `The other side reads too slowly: more than ${bytesMax} bytes wait for it.`;
}
