// The path of a blob's content: the only function that makes a path from a hash. Hashes come from the data file, which another program may
// have written. An invalid hash never becomes a path, because it could lead out of the folder.

import { join } from "node:path";

const hashForm = /^[0-9a-f]{64}$/;

/** The folder and the file of a blob below `directory`; null when `hash` is not a SHA-256 in hexadecimal digits. */
export function blobPath(directory: string, hash: string): { readonly folder: string; readonly file: string } | null {
  if (!hashForm.test(hash)) return null;
  const folder = join(directory, hash.slice(0, 2));
  return { folder, file: join(folder, hash) };
}
