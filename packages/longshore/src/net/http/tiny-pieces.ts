// A body or message may come in pieces of any size. Taking a piece apart costs the same whatever it carries, so very many of a few bytes are
// refused.

/** Pieces of fewer bytes than this on average cost more to take apart than they carry. */
const tinyBytes = 16;
/** A program that writes each word by itself has fewer of them in a request. */
const tinyPiecesMax = 10_000;

/** True when a request has brought too many tiny pieces. */
export function areTooTiny(pieces: number, bytes: number): boolean {
  return pieces > tinyPiecesMax && bytes < pieces * tinyBytes;
}
