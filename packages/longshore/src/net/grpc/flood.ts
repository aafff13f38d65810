// Recognises a client that only keeps the server busy, by what it does in one turn of the event loop: it opens streams and resets them
// before their call has begun, or sends messages in very many tiny pieces. No client that waits for its answers comes near these counts.
//
// What Node and nghttp2 do by themselves: they refuse streams beyond `maxConcurrentStreams` without a call into JavaScript; end a
// connection that leaves a thousand answers to pings or settings unread, sends a thousand wrong frames, or more than eight CONTINUATION
// frames for one head; and send GOAWAY after a thousand resets, but only when all that had arrived is worked through.
import type { LoopTurns } from "../../core/slices/loop-turns.ts";

/** Streams that were reset before their call began. A client that cancels a few calls at once is no attacker. */
const resetsMax = 100;
/** Pieces of messages, and the bytes that they have on average. All calls that may be open at once send fewer. */
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

  /** Counts from 0 in each turn. */
  #begin(): void {
    const { number } = this.#turns;
    if (number === this.#turn) return;
    this.#turn = number;
    this.#resets = 0;
    this.#pieces = 0;
    this.#bytes = 0;
  }
}
