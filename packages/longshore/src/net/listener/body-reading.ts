// Reads a whole body as text. Each piece is counted against the budget of all bodies and the limits of the route when it arrives. The
// first piece is decoded when a second one or the end arrives, each later piece at once. So little work is left for the end, and a body that is too
// large is never completely in memory.

import type { ByteBudget } from "../../core/byte-budget.ts";
import { JsonScan } from "../../core/json/json-scan.ts";
import type { Moving } from "../../core/stalls.ts";
import { type BodyOutcome, type BodyRequest, decodeBody } from "./body.ts";
import { bodyTooLarge, noRoomForBody, notUtf8, problemError, tooManyValues } from "./problems.ts";

export interface BodyLimits {
  readonly bytesMax: number;
  /** The limit of JSON values, including names of members. A body that arrives in one piece of at most `unscannedBytes` is not scanned. */
  readonly valuesMax: number;
  /** With `keep` false, the bytes are only counted. */
  readonly keep: boolean;
}

/**
 * The size of one read of a socket, which is the whole body of most requests. It has at most as many values as bytes, and is parsed
 * quickly.
 */
const unscannedBytes = 65_536;

export class BodyReading implements Moving {
  readonly #request: BodyRequest;
  readonly #limits: BodyLimits;
  readonly #budget: ByteBudget;
  readonly #done: (outcome: BodyOutcome, held: number) => void;
  /** Most bodies are one piece, which is decoded without a copy. */
  #first: Buffer | undefined;
  #pieces: Pieces | undefined;
  #held = 0;
  /** The number of bytes received so far. */
  size = 0;

  /**
   * Calls `done` at most once: not after `stop`, and not when the client disconnects before the end. After a refusal, the rest of the body
   * goes to the request's own stream. A text still occupies `held` bytes of the budget, which the caller must give back.
   */
  constructor(request: BodyRequest, limits: BodyLimits, budget: ByteBudget, done: (outcome: BodyOutcome, held: number) => void) {
    this.#request = request;
    this.#limits = limits;
    this.#budget = budget;
    this.#done = done;
    request.onChunk = (chunk) => this.#take(chunk);
  }

  /** Drops the bytes that have been read. Calling it again has no effect. */
  stop(): void {
    this.#request.onChunk = undefined;
    this.#budget.give(this.#held);
    this.#held = 0;
    this.#first = undefined;
    this.#pieces = undefined;
  }

  progress(): number {
    return this.size;
  }

  stalled(): void {
    this.#end("stalled");
  }

  #take(chunk: Buffer | null): void {
    const { bytesMax, keep } = this.#limits;
    if (chunk === null) return this.#end(this.#whole());
    this.size += chunk.length;
    if (this.size > bytesMax) return this.#end("too-large");
    if (!keep) return;
    if (!this.#budget.take(chunk.length)) return this.#end("no-room");
    this.#held += chunk.length;
    if (this.#first === undefined) this.#first = chunk;
    else {
      this.#pieces ??= new Pieces(this.#limits.valuesMax, this.#first);
      this.#pieces.add(chunk);
    }
    if (this.#pieces?.refused !== undefined) this.#end(this.#pieces.refused);
  }

  #whole(): BodyOutcome {
    const first = this.#first;
    if (first === undefined) return { text: "" };
    if (this.#pieces === undefined && first.length <= unscannedBytes) return decodeBody(first);
    this.#pieces ??= new Pieces(this.#limits.valuesMax, first);
    return this.#pieces.whole();
  }

  #end(outcome: BodyOutcome): void {
    const held = typeof outcome === "string" ? 0 : this.#held;
    this.#held -= held;
    this.stop();
    this.#done(outcome, held);
  }
}

/**
 * Reads a whole body as text, like `BodyReading`, but from a body that was opened as a stream. Such a stream waits while it is not read. Rejects with LONGSHORE_LIMIT or LONGSHORE_BAD_INPUT.
 */
export async function collectText(
  stream: AsyncIterable<Buffer>,
  { bytesMax, valuesMax }: Pick<BodyLimits, "bytesMax" | "valuesMax">,
  budget: ByteBudget,
): Promise<string> {
  const pieces = new Pieces(valuesMax);
  let size = 0;
  let held = 0;
  try {
    for await (const piece of stream) {
      size += piece.length;
      if (size > bytesMax) throw problemError(bodyTooLarge(bytesMax));
      if (!budget.take(piece.length)) throw problemError(noRoomForBody(budget.max));
      held += piece.length;
      pieces.add(piece);
      if (pieces.refused !== undefined) break;
    }
    const outcome = pieces.whole();
    if (outcome === "too-many-values") throw problemError(tooManyValues(valuesMax));
    if (typeof outcome === "string") throw problemError(notUtf8());
    return outcome.text;
  } finally {
    budget.give(held);
  }
}

/** The text of a body that arrives in several pieces. */
class Pieces {
  /** Why the body is refused, as soon as that is known. */
  refused: "too-many-values" | "not-utf8" | undefined = undefined;
  readonly #valuesMax: number;
  readonly #scan = new JsonScan();
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #text = "";

  constructor(valuesMax: number, first?: Buffer) {
    this.#valuesMax = valuesMax;
    if (first !== undefined) this.add(first);
  }

  add(piece: Buffer): void {
    this.#scan.push(piece);
    if (this.#scan.values > this.#valuesMax) this.refused ??= "too-many-values";
    this.#decode(piece);
  }

  whole(): BodyOutcome {
    this.#decode(undefined);
    return this.refused ?? { text: this.#text };
  }

  /** Without a piece: the end of the body, where no character may be incomplete. */
  #decode(piece: Buffer | undefined): void {
    if (this.refused !== undefined) return;
    try {
      this.#text += this.#decoder.decode(piece, { stream: piece !== undefined });
    } catch {
      // The decoder throws only for invalid UTF-8.
      this.refused = "not-utf8";
    }
  }
}
