// A connection may begin only a share of the calls in one turn of the event loop. Streams beyond this share wait here, and begin in order
// in later turns. Their number is bounded by the limit of open streams of a connection.
//
// For node:http, a limit of bytes does this (net/listener/socket-throttle.ts). Without such a limit, node:http2 uses a fifth less CPU.
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Share } from "../../core/slices/loop-turns.ts";

export interface WaitingOptions {
  begin(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void;
  /** Called for each piece of a message that arrives for a waiting stream. */
  came(bytes: number): void;
  /** Called for a stream that was reset while it waited; its call never begins. */
  reset(): void;
}

export class WaitingStreams {
  readonly #options: WaitingOptions;
  readonly #streams = new Map<ServerHttp2Stream, IncomingHttpHeaders>();

  constructor(options: WaitingOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#streams.size;
  }

  add(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    this.#streams.set(stream, headers);
    // A stream without a reader buffers its data and emits no event. Node calls `push` with each piece.
    const push = stream.push.bind(stream);
    stream.push = (piece: Buffer | null) => {
      if (piece !== null) this.#options.came(piece.length);
      return push(piece);
    };
    stream.once("close", () => {
      if (this.#streams.delete(stream)) this.#options.reset();
    });
  }

  /** Begins as many calls as the share allows; the others wait again. */
  continue(share: Share): void {
    for (const [stream, headers] of this.#streams) {
      if (share.used) break;
      this.#streams.delete(stream);
      delete (stream as { push?: unknown }).push;
      this.#options.begin(stream, headers);
    }
    if (this.#streams.size > 0) share.wait();
  }
}
