// An operation that waits for its batch, or for the commit of its batch.

import type { Orderer } from "../core/orderer.ts";
import type { Tx } from "./tx.ts";

export interface Job {
  /** See `Tx`. */
  orderer: Orderer | undefined;
  work: (tx: Tx) => unknown;
  resolve: (value: never) => void;
  reject: (error: Error) => void;
  value: unknown;
  error: Error | null;
  /** The operation was postponed until this promise settles. */
  until: Promise<unknown> | null;
}

/** The fields of a job before it is performed, or performed again. */
export const untried: Pick<Job, "error" | "until"> = { error: null, until: null };
