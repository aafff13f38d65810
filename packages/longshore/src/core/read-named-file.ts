// A file that a person names: a definition, a configuration, a key, tokens. It may be a pipe, such as `<(pass show token)` of a shell, into which
// something is written soon; or a pipe into which nothing ever is, or a device without an end. Opening or reading one of those the usual way
// holds the whole process, which then does not even notice a signal.

import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** Above every limit of what is read from such files. */
const bytesMax = 64 * 1024 * 1024;
/** How long a pipe may take from the first look to its end. */
const pipeMsMax = 5_000;
const lookMs = 10;
const pieceBytes = 64 * 1024;

/** Throws what the file system reports, and an Error for a file without an end. */
export function readNamedFile(path: string): Buffer {
  // Not there on Windows, which has no such pipes among its files either.
  const handle = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    return readAll(handle, !fstatSync(handle).isFile());
  } finally {
    closeSync(handle);
  }
}

function readAll(handle: number, isPipe: boolean): Buffer {
  const pieces: Buffer[] = [];
  const untilMs = performance.now() + pipeMsMax;
  let bytes = 0;
  for (;;) {
    const piece = readPiece(handle);
    if (piece !== null && piece.length > 0) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > bytesMax) throw new Error(`it has more than ${bytesMax} bytes`);
    } else if (piece !== null && (bytes > 0 || !isPipe)) return Buffer.concat(pieces);
    // A pipe that has no writer yet looks as if it were at its end.
    else if (performance.now() > untilMs) throw new Error(`it is a pipe that did not end within ${pipeMsMax / 1_000} s`);
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lookMs);
  }
}

/** Null when there is nothing now. */
function readPiece(handle: number): Buffer | null {
  const piece = Buffer.allocUnsafe(pieceBytes);
  try {
    return piece.subarray(0, readSync(handle, piece));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return null;
    throw error;
  }
}
