// Reads a file that a person names: a definition, a configuration, a key, tokens. The file may be a pipe that another program fills soon,
// such as `<(pass show token)` in a shell. It may also be a pipe that stays empty, or a device without an end. Reading such a file in the
// usual way blocks the whole process, even for signals.

import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** More than the limit of any content that is read from such files. */
const bytesMax = 64 * 1024 * 1024;
/** How long reading a pipe may take in all. */
const pipeMsMax = 5_000;
const lookMs = 10;
const pieceBytes = 64 * 1024;

/** Throws the errors of the file system, and an Error for a file without an end. */
export function readNamedFile(path: string): Buffer {
  // O_NONBLOCK is undefined on Windows, which has no such pipes.
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
    // A pipe that has no writer yet looks like a pipe at its end.
    else if (performance.now() > untilMs) throw new Error(`it is a pipe that did not end within ${pipeMsMax / 1_000} s`);
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lookMs);
  }
}

/** Returns null when no bytes are available now. */
function readPiece(handle: number): Buffer | null {
  const piece = Buffer.allocUnsafe(pieceBytes);
  try {
    return piece.subarray(0, readSync(handle, piece));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return null;
    throw error;
  }
}
