// Blobs for a server that does not own the data. It reads only blobs that were used recently. For any other blob, the read must be stored as its
// last use, and only the owner can do that.

import type { Clock } from "../../core/clock.ts";
import { NeedsOwner } from "../needs-owner.ts";
import type { TableRows } from "../rows.ts";
import type { Blob } from "../tables/blob.ts";
import type { ReadRows } from "../tx.ts";
import { type BlobStore, isBlobHash, type StoredBlob } from "./blob.ts";
import type { BlobContents } from "./contents.ts";
import { storedOf, useMs } from "./local-blobs.ts";

export interface StoredBlobsDeps {
  readonly rows: Pick<TableRows<Blob>, "get">;
  readonly read: ReadRows;
  readonly contents: Pick<BlobContents, "open">;
  /** The clock to which the times in the rows belong. */
  now(): Promise<ReturnType<Clock["now"]>>;
}

export class StoredBlobs implements BlobStore {
  readonly #deps: StoredBlobsDeps;

  constructor(deps: StoredBlobsDeps) {
    this.#deps = deps;
  }

  put(): Promise<never> {
    return Promise.reject(new NeedsOwner());
  }

  async get(hash: string): ReturnType<BlobStore["get"]> {
    const blob = await this.stat(hash);
    if (blob === undefined) return undefined;
    const content = await this.#deps.contents.open(hash).catch(needsOwner);
    // The blob may have been removed in between.
    if (content === null) throw new NeedsOwner();
    return { ...blob, content };
  }

  async stat(hash: string): Promise<StoredBlob | undefined> {
    const { rows, read } = this.#deps;
    if (!isBlobHash(hash)) return undefined;
    const [blob, now] = await Promise.all([read((tx) => rows.get(tx, hash)), this.#deps.now().catch(needsOwner)]);
    if (blob === null) return undefined;
    if (now - blob.usedAt >= useMs) throw new NeedsOwner();
    return storedOf(blob);
  }
}

function needsOwner(cause: unknown): never {
  throw new NeedsOwner(cause);
}
