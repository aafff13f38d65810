// Limits responses that are being sent. Their bytes are in memory until their readers take them, so they count against one budget of the
// server. A reader that takes nothing for a while is disconnected.

import type { Socket } from "node:net";
import type { ByteBudget } from "../../core/byte-budget.ts";
import type { Moving, Stalls } from "../../core/stalls.ts";

/** The maximum buffers of a streamed response: a piece of a file, and what waits in the connection. */
const streamBytes = 131_072;
/** Smaller responses, such as refusals, are always accepted. */
const tinyBytes = 4_096;

export class SendBudget {
  readonly #budget: ByteBudget;
  readonly #stalls: Stalls;
  readonly #unsent = new Set<Socket>();
  readonly #queued = new WeakMap<Socket, { bytes: number }>();

  constructor(budget: ByteBudget, stalls: Stalls) {
    this.#budget = budget;
    this.#stalls = stalls;
  }

  get bytesMax(): number {
    return this.#budget.max;
  }

  /** Reserves room for a response of this size; returns the function that releases it, or undefined when there is no room. */
  take(bytes: number): (() => void) | undefined {
    if (bytes <= tinyBytes) this.#budget.takeAnyway(bytes);
    else if (!this.#budget.take(bytes)) return undefined;
    return () => this.#budget.give(bytes);
  }

  /** The same for a response that may wait behind others of its connection; released when the connection ends. */
  queue(socket: Socket, bytes: number): (() => void) | undefined {
    const giveBack = this.take(bytes);
    if (giveBack === undefined) return undefined;
    const queued = this.#queued.get(socket) ?? this.#begin(socket);
    queued.bytes += bytes;
    return () => {
      if (socket.destroyed) return;
      queued.bytes -= bytes;
      giveBack();
    };
  }

  #begin(socket: Socket): { bytes: number } {
    const queued = { bytes: 0 };
    this.#queued.set(socket, queued);
    socket.once("close", () => this.#budget.give(queued.bytes));
    return queued;
  }

  /** The same for a streamed response, whose reader is watched until it is released. */
  takeStream(socket: Socket): (() => void) | undefined {
    const giveBack = this.take(streamBytes);
    if (giveBack === undefined) return undefined;
    const reader = new Reader(socket);
    this.#stalls.watch(reader);
    return () => {
      this.#stalls.unwatch(reader);
      giveBack();
    };
  }

  watch(writing: Moving): void {
    this.#stalls.watch(writing);
  }

  unwatch(writing: Moving): void {
    this.#stalls.unwatch(writing);
  }

  /** The client has not taken the written bytes. Until it has, they count and the client is watched. */
  left(socket: Socket): void {
    if (this.#unsent.has(socket)) return;
    const bytes = socket.writableLength;
    const reader = new Reader(socket);
    const done = () => {
      socket.removeListener("drain", done);
      socket.removeListener("close", done);
      this.#unsent.delete(socket);
      this.#stalls.unwatch(reader);
      this.#budget.give(bytes);
    };
    this.#unsent.add(socket);
    this.#budget.takeAnyway(bytes);
    this.#stalls.watch(reader);
    socket.on("drain", done);
    socket.on("close", done);
  }
}

/** The reader of a socket. */
class Reader implements Moving {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** The bytes that the system has taken. NaN while nothing waits: then the reader is not to blame. */
  progress(): number {
    const { writableLength, bytesWritten } = this.#socket;
    return writableLength === 0 ? Number.NaN : bytesWritten - writableLength;
  }

  stalled(): void {
    this.#socket.destroy();
  }
}
