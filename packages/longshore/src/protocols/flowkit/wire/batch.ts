// What travels between a handler and its worker: batches, their results, and the final word. Each may be made with the names of the wire
// or with those of JavaScript, and answers to both.

import type { JsonObject } from "../../../core/json/json.ts";
import type { PartRef } from "./artifacts/artifacts.ts";

/** The fields of a batch, in either spelling. */
export interface BatchFields {
  /** Names the batch within its node forever; the hash of its payload where it has no name. */
  readonly batch_uid?: string | null;
  readonly batchUid?: string | null;
  readonly payload?: JsonObject;
  /** Parts of upstream nodes that are done with when this batch is: a later attempt is not given them again. */
  readonly finishes?: readonly PartRef[];
}

/** A piece of input. */
export class Batch {
  readonly batch_uid: string | null;
  readonly payload: JsonObject;
  readonly finishes: readonly PartRef[];

  constructor({ batch_uid, batchUid, payload = {}, finishes = [] }: BatchFields = {}) {
    this.batch_uid = batch_uid ?? batchUid ?? null;
    this.payload = payload;
    this.finishes = finishes;
  }

  get batchUid(): string | null {
    return this.batch_uid;
  }
}

/** A batch for a generator, which can report its result. */
export class ReadBatch extends Batch {
  readonly #skip: () => void;

  constructor({ batch_uid, payload, finishes }: Batch, skip: () => void) {
    super({ batch_uid, payload, finishes });
    this.#skip = skip;
  }

  /**
   * To be yielded: the result of this batch, and of the others. It is named after this one; all of them are finished when the next batch is
   * requested and what was yielded until then is stored.
   */
  result(metrics: object, ...others: readonly ReadBatch[]): ResultOf {
    return new ResultOf([this, ...others], metrics);
  }

  /** Nothing comes of it: it is done with. */
  skip(): void {
    this.#skip();
  }
}

/** What `batch.result(metrics)` gives to be yielded. */
export class ResultOf {
  readonly batches: readonly ReadBatch[];
  readonly metrics: object;

  constructor(batches: readonly ReadBatch[], metrics: object) {
    this.batches = batches;
    this.metrics = metrics;
  }
}

/** The fields of the result of a batch, in either spelling. */
export interface BatchResultFields {
  readonly success: boolean;
  /** Kept as the batch's artifact, which downstream nodes read, and added up by the coordinator. */
  readonly metrics?: object;
  readonly artifacts_ref?: JsonObject | null;
  readonly artifactsRef?: JsonObject | null;
  /** Why it failed, for machines. */
  readonly reason_code?: string | null;
  readonly reasonCode?: string | null;
  /** Whether trying again is of no use. */
  readonly permanent?: boolean;
  /** Why it failed, for people. */
  readonly error?: string | null;
}

/** What became of a batch. */
export class BatchResult {
  readonly success: boolean;
  readonly metrics: object;
  readonly artifacts_ref: JsonObject | null;
  readonly reason_code: string | null;
  readonly permanent: boolean;
  readonly error: string | null;

  constructor(fields: BatchResultFields) {
    this.success = fields.success;
    this.metrics = fields.metrics ?? {};
    this.artifacts_ref = fields.artifacts_ref ?? fields.artifactsRef ?? null;
    this.reason_code = fields.reason_code ?? fields.reasonCode ?? null;
    this.permanent = fields.permanent ?? false;
    this.error = fields.error ?? null;
  }

  get reasonCode(): string | null {
    return this.reason_code;
  }

  get artifactsRef(): JsonObject | null {
    return this.artifacts_ref;
  }
}

/** The fields of the result of `finalize`, in either spelling. */
export interface FinalizeResultFields {
  readonly metrics?: object;
  readonly artifacts_ref?: JsonObject | null;
  readonly artifactsRef?: JsonObject | null;
}

/** The report of a node at its end. */
export class FinalizeResult {
  readonly metrics: object;
  readonly artifacts_ref: JsonObject | null;

  constructor({ metrics = {}, artifacts_ref, artifactsRef }: FinalizeResultFields = {}) {
    this.metrics = metrics;
    this.artifacts_ref = artifacts_ref ?? artifactsRef ?? null;
  }

  get artifactsRef(): JsonObject | null {
    return this.artifacts_ref;
  }
}
