// Holds a streamed body to the length that its headers announce. A client takes the bytes behind that length for the next response on the
// connection, and the next response for the rest of a body that is shorter; a proxy would give them to another client.

import { Transform, type TransformCallback } from "node:stream";

/** Passes on exactly `bytes`. Fails instead of ending early or passing on more, so that the connection is closed. */
export function exactLength(bytes: number): Transform {
  let left = bytes;
  return new Transform({
    transform(chunk: Buffer, _encoding, next: TransformCallback) {
      left -= chunk.length;
      if (left < 0) next(mismatch(`more than the ${bytes} bytes that were announced`));
      else next(null, chunk);
    },
    flush(next: TransformCallback) {
      next(left === 0 ? null : mismatch(`${bytes - left} of ${bytes} bytes that were announced`));
    },
  });
}

/** The source has lost or gained bytes: what is stored is damaged. */
export class LengthMismatch extends Error {}

function mismatch(found: string): LengthMismatch {
  return new LengthMismatch(`The body of the reply has ${found}.`);
}
