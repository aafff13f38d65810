// The port of blobs to a store. Blobs are bytes too large for inputs and outputs, addressed by the SHA-256 of their content.

import type { Readable } from "node:stream";

export interface StoredBlob {
  /** SHA-256 of the content, 64 hexadecimal digits in lower case. */
  readonly hash: string;
  readonly bytes: number;
  /** A short text that the client stores with the blob, such as a file name. It is not interpreted, and not part of the hash. */
  readonly note: string | null;
}

export interface BlobStore {
  /**
   * Stores content that arrives in pieces, without holding it in memory; resolves when it is durable. The same content again is stored
   * once. With `hash`, content that does not match is refused with LONGSHORE_BAD_INPUT; content above the limit with LONGSHORE_LIMIT; a
   * full disk with LONGSHORE_STORE_UNAVAILABLE. Refused content is removed. A note replaces the earlier note of the same content.
   */
  put(content: AsyncIterable<Uint8Array> | Uint8Array, options?: { hash?: string; note?: string }): Promise<StoredBlob>;
  /** Undefined when there is no such blob. The caller owns the stream; it stays readable even if the blob is pruned in the meantime. */
  get(hash: string): Promise<(StoredBlob & { content: Readable }) | undefined>;
  /** Undefined when there is no such blob. Counts as a use, so a blob that was just read is not pruned. */
  stat(hash: string): Promise<StoredBlob | undefined>;
}

/** Default for the largest blob: enough for an archive of build results, not for a disk image. */
export const blobBytesMax: number = 1024 * 1024 * 1024;

export function isBlobHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}
