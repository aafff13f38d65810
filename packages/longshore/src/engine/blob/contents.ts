// The port of blobs to where their content is stored: in files, or in rows of another store. It decides nothing: which contents are kept is
// the engine's business.

import type { Readable } from "node:stream";

/** Content that has arrived whole. */
export interface ReceivedContent {
  /** SHA-256, in hexadecimal digits. */
  readonly hash: string;
  readonly bytes: number;
  /** Makes it durable under its hash. The same content may be there already. */
  keep(): Promise<void>;
  /** To be called in the end, in any case: removes what was not kept. */
  discard(): Promise<void>;
}

export interface BlobContents {
  /** Receives pieces without holding them in memory. `take` gets the size of each piece before it is stored; when it throws, nothing remains. */
  receive(content: AsyncIterable<Uint8Array> | Uint8Array, take: (bytes: number) => void): Promise<ReceivedContent>;
  /** Null when there is none. It stays readable when it is removed meanwhile. */
  open(hash: string): Promise<Readable | null>;
  /** Takes content away at once: the same content may be kept again right after. The function that is returned frees its space. */
  takeAway(hash: string): () => Promise<void>;
  /** Some hashes of contents that have not changed since `before`, others with each call. */
  unchanged(before: number): Promise<string[]>;
  /** What arrives later fails. */
  close(): void;
}
