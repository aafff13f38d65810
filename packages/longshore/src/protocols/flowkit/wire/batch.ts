// The objects that a handler and its worker exchange: batches, their results, and the final result. Each can be made with the field names
// of the wire or of JavaScript, and has both.

import type { JsonObject } from "../../../core/json/json.ts";
import type { PartRef } from "./artifacts/artifacts.ts";

/** The fields of a batch, in either notation. */
export interface BatchFields {
  /** The permanent name of the batch within its node. Default: the hash of its payload. */
  readonly batch_uid?: string | null;
  readonly batchUid?: string | null;
  readonly payload?: JsonObject;
  /** Upstream parts that are finished with this batch: a later attempt does not read them again. */
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
   * The result of this batch and of `others`, for the generator to yield. The result has the name of this batch. All these batches are
   * finished when the generator has requested the next batch and everything before is stored.
   */
  result(metrics: object, ...others: readonly ReadBatch[]): ResultOf {
    return new ResultOf([this, ...others], metrics);
  }

  /** Marks the batch as finished without a result. */
  skip(): void {
    this.#skip();
  }
}

/** The value of `batch.result(metrics)`, to be yielded. */
export class ResultOf {
  readonly batches: readonly ReadBatch[];
  readonly metrics: object;

  constructor(batches: readonly ReadBatch[], metrics: object) {
    this.batches = batches;
    this.metrics = metrics;
  }
}

/** The fields of a batch's result, in either notation. */
export interface BatchResultFields {
  readonly success: boolean;
  /** Stored as the batch's artifact, which downstream nodes read. The coordinator adds up the metrics of all batches. */
  readonly metrics?: object;
  readonly artifacts_ref?: JsonObject | null;
  readonly artifactsRef?: JsonObject | null;
  /** The reason of the failure, for machines. */
  readonly reason_code?: string | null;
  readonly reasonCode?: string | null;
  /** Whether the failure is permanent, so that a retry is useless. */
  readonly permanent?: boolean;
  /** The reason of the failure, for people. */
  readonly error?: string | null;
}

/** The result of a batch. */
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

/** The fields of the result of `finalize`, in either notation. */
export interface FinalizeResultFields {
  readonly metrics?: object;
  readonly artifacts_ref?: JsonObject | null;
  readonly artifactsRef?: JsonObject | null;
}

/** The final result of a node. */
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
