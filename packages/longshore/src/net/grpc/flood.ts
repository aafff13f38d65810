// Recognises a client that only keeps the server busy. In one turn of the event loop, it opens many streams and resets them before their
// calls have begun, or sends messages in very many tiny pieces. A client that waits for its responses never comes near these counts.
//
// Node and nghttp2 already do the following. They refuse streams beyond `maxConcurrentStreams` without a call into JavaScript. They end a
// connection that leaves a thousand replies to pings or settings unread, sends a thousand wrong frames, or sends more than eight
// CONTINUATION frames for one header block. They send GOAWAY after a thousand resets, but only when everything that had arrived is
// processed.
import type { LoopTurns } from "../../core/slices/loop-turns.ts";

/** The limit of streams that were reset before their call began. A client may cancel a few calls at once. */
const resetsMax = 100;
/** The limit of pieces of messages, and of their average size. All calls that may be open at once send fewer pieces. */
const piecesMax = 2_048;
const pieceBytes = 16;

export class Flood {
  readonly #turns: LoopTurns;
  readonly #found: () => void;
  #turn = 0;
  #resets = 0;
  #pieces = 0;
  #bytes = 0;

  /** `found` may be called several times. */
  constructor(turns: LoopTurns, found: () => void) {
    this.#turns = turns;
    this.#found = found;
  }

  reset(): void {
    this.#begin();
    if (++this.#resets > resetsMax) this.#found();
  }

  piece(bytes: number): void {
    this.#begin();
    this.#bytes += bytes;
    if (++this.#pieces > piecesMax && this.#bytes < this.#pieces * pieceBytes) this.#found();
  }

  /** Starts from 0 in each turn. */
  #begin(): void {
    const { number } = this.#turns;
    if (number === this.#turn) return;
    this.#turn = number;
    this.#resets = 0;
    this.#pieces = 0;
    this.#bytes = 0;
  }
}
