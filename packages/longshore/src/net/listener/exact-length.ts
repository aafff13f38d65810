// Checks that a streamed body has exactly the length that its headers announce. When the body is longer, the client takes the additional bytes for its
// next response. When it is shorter, the client takes the next response for the rest of the body. Behind a proxy, the next response may be for another
// client.

import { Transform, type TransformCallback } from "node:stream";

/** Passes on exactly `bytes`. When there are fewer or more, it fails, so that the connection is closed. */
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
