// Streams of one connection whose call has not begun: they came beyond its share of a turn of the event loop. Each begins when its turn has come, in
// the order in which they came. There are at most as many as may be open on a connection.
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Share } from "../../core/slices/loop-turns.ts";

export interface WaitingOptions {
  begin(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void;
  /** Called for each piece of a message that comes for a stream that waits. */
  came(bytes: number): void;
  /** Called for a stream that was reset while it waited, which does not begin any more. */
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
    // Without a reader a stream keeps what comes and reports nothing. Node calls `push` with each piece.
    const push = stream.push.bind(stream);
    stream.push = (piece: Buffer | null) => {
      if (piece !== null) this.#options.came(piece.length);
      return push(piece);
    };
    stream.once("close", () => {
      if (this.#streams.delete(stream)) this.#options.reset();
    });
  }

  /** Begins as many as the share allows, and waits again with the rest. */
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
