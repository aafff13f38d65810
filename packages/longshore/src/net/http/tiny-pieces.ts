// Refuses a body or message that arrives in very many tiny pieces: processing a piece costs the same for any size.

/** Pieces that are smaller on average cost more to process than they carry. */
const tinyBytes = 16;
/** A program that writes each word separately has fewer pieces in a request. */
const tinyPiecesMax = 10_000;

/** True when a request has brought too many tiny pieces. */
export function areTooTiny(pieces: number, bytes: number): boolean {
  return pieces > tinyPiecesMax && bytes < pieces * tinyBytes;
}
