// Keeps the contents of files as long as their runs, and removes the files of runs that are gone.

import type { Clock } from "../../../core/clock.ts";
import type { FailureListener } from "../../../core/failure-listener.ts";
import type { BlobStore } from "../../../engine/blob/blob.ts";
import type { DocumentStore } from "../../../engine/run/documents.ts";
import type { Reader } from "../../../engine/run/reader.ts";
import { fileKind, type StoredFile } from "./files.ts";

export interface FileUpkeepDeps {
  readonly clock: Clock;
  readonly reader: Reader;
  readonly documents: DocumentStore;
  readonly blobs: BlobStore;
  readonly trouble: FailureListener;
}

/** Much shorter than the time after which an unused blob is removed: 30 days by default. */
const everyMs = 3_600_000;

const what = "the upkeep of files of Conductor's runs";

export class FileUpkeep {
  readonly #deps: FileUpkeepDeps;
  #stopTimer = () => {};
  #isClosed = false;

  constructor(deps: FileUpkeepDeps) {
    this.#deps = deps;
    this.#wait();
  }

  #wait(): void {
    const { clock, trouble } = this.#deps;
    this.#stopTimer = clock.at(clock.now() + everyMs, () => {
      this.look()
        .then(() => trouble.working(what))
        .catch((error) => trouble.failing(what, error))
        .finally(() => {
          if (!this.#isClosed) this.#wait();
        });
    });
  }

  /** Visits each file once. Files are few, and the documents are read one by one. */
  async look(): Promise<void> {
    const { documents, reader, blobs } = this.#deps;
    for await (const { name, body } of documents.eachDocument(fileKind)) {
      if (this.#isClosed) return;
      await reader.turn(1);
      const { workflowId, hash } = JSON.parse(body) as StoredFile;
      if ((await reader.runHead(workflowId)) === undefined) await documents.removeDocument(fileKind, name);
      // Counts as a use of the blob.
      else if (hash !== null) await blobs.stat(hash);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#stopTimer();
  }
}
