// The port of blobs to the storage of their content: files, or rows of another store. It decides nothing: the engine decides which contents
// are kept.

import type { Readable } from "node:stream";

/** Content that has arrived completely. */
export interface ReceivedContent {
  /** SHA-256, in hexadecimal digits. */
  readonly hash: string;
  readonly bytes: number;
  /** Makes the content durable under its hash. The same content may already be stored. */
  keep(): Promise<void>;
  /** Must always be called at the end: removes content that was not kept. */
  discard(): Promise<void>;
}

export interface BlobContents {
  /**
   * Receives content in pieces without holding it in memory. `take` is called with the size of each piece before it is stored; when it
   * throws, all pieces are removed.
   */
  receive(content: AsyncIterable<Uint8Array> | Uint8Array, take: (bytes: number) => void): Promise<ReceivedContent>;
  /** Null when there is no such content. The stream stays readable when the content is removed in the meantime. */
  open(hash: string): Promise<Readable | null>;
  /** Removes content at once: the same content may be stored again right after. The returned function frees its space. */
  takeAway(hash: string): () => Promise<void>;
  /** Returns some hashes of contents that have not changed since `before`, different ones with each call. */
  unchanged(before: number): Promise<string[]>;
  /** Refuses content that arrives later. */
  close(): void;
}
