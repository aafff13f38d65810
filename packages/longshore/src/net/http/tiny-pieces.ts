// Refuses a body or message that arrives in very many tiny pieces: processing a piece costs the same for any size.

/** Processing pieces with a smaller average size costs more than their content. */
const tinyBytes = 16;
/** Even a program that writes each word separately sends fewer pieces in a request. */
const tinyPiecesMax = 10_000;

/** True when a request has brought too many tiny pieces. */
export function areTooTiny(pieces: number, bytes: number): boolean {
  return pieces > tinyPiecesMax && bytes < pieces * tinyBytes;
}
