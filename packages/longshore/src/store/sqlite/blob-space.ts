// The room that all blobs together take. Content counts from its first byte on, so that uploads side by side cannot pass the limit
// together; what is refused or cut off gives its room back.

import { LongshoreError } from "../../errors.ts";
import { quotaDefaults } from "../../quotas.ts";

export class BlobSpace {
  #used: number;
  readonly #max: number;

  constructor(used: number, max: number = quotaDefaults.blobBytes) {
    this.#used = used;
    this.#max = max;
  }

  /** A place for content that arrives. */
  open(): BlobPlace {
    let taken = 0;
    return {
      take: (bytes) => {
        if (this.#used + bytes > this.#max) throw full(this.#max);
        this.#used += bytes;
        taken += bytes;
      },
      keep: () => {
        taken = 0;
      },
      close: () => {
        this.free(taken);
        taken = 0;
      },
    };
  }

  free(bytes: number): void {
    this.#used -= bytes;
  }
}

export interface BlobPlace {
  /** Throws LONGSHORE_LIMIT when there is no room for so many bytes more. */
  take(bytes: number): void;
  /** The content is durable, and not a second copy: its room stays taken. */
  keep(): void;
  /** Gives back what was not kept. */
  close(): void;
}

function full(max: number): LongshoreError {
  const detail = { field: "blobs", expected: `at most ${max} bytes of blobs altogether` };
  const what = "Keep blobs for a shorter time (retention.blobs) or raise quotas.blobBytes";
  return new LongshoreError("LONGSHORE_LIMIT", `There is no room for this blob: all blobs together may have ${max} bytes. ${what}.`, {
    detail,
  });
}
