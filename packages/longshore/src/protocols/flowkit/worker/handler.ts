// The forms of a role's handler: an object of functions, a generator over batches, or a class with the names of the reference. The worker
// uses the first form.

import { isObject, type JsonObject } from "../../../core/json/json.ts";
import { Batch, type BatchFields, BatchResult, FinalizeResult, type ReadBatch } from "../wire/batch.ts";
import { type Classified, classifyError } from "./classify.ts";
import type { RunContext } from "./run-context.ts";

/** The arguments of `init`. */
export interface RunInfo {
  readonly task_id: string;
  readonly node_id: string;
  readonly attempt_epoch: number;
  readonly worker_id: string;
  readonly role: string;
}

/** The input that a handler has loaded; `input_inline` may propose an adapter when the command names none. */
export type Loaded = { readonly [field: string]: unknown };

/** A sequence of batches. */
export type Batches = AsyncIterable<Batch | BatchFields> | Iterable<Batch | BatchFields>;

/** Only `processBatch` is required. */
export interface StreamHandler {
  init?(run: RunInfo): unknown;
  /** Default: returns both as `{ input_ref, input_inline }`. */
  loadInput?(inputRef: JsonObject | null, inputInline: JsonObject | null): Loaded | Promise<Loaded>;
  /** The batches when no adapter is selected. Default: one batch with the loaded input. */
  iterBatches?(loaded: Loaded, ctx: RunContext): Batches;
  /** Returns the batch's metrics or a BatchResult. Throwing fails the batch and the node. */
  processBatch(batch: Batch, ctx: RunContext): unknown;
  /** Returns the node's final metrics or a FinalizeResult. */
  finalize?(ctx: RunContext): unknown;
  /** The name of an error, and whether it is permanent. */
  classifyError?(error: unknown): Classified;
}

/**
 * Reads batches and yields metrics; its return value is the node's final metrics. A later attempt reads all batches again except those that
 * were marked as finished, with `yield batch.result(metrics)` or `batch.skip()`.
 */
export type BatchGenerator = (batches: AsyncIterable<ReadBatch>, ctx: RunContext) => AsyncGenerator<unknown, unknown, void>;

/** The base class of handlers with the names of the reference. */
export class RoleHandler {
  readonly role: string = "";

  init(_runInfo: RunInfo): unknown {
    return undefined;
  }

  load_input(input_ref: JsonObject | null, input_inline: JsonObject | null): Loaded | Promise<Loaded> {
    return { input_ref: input_ref ?? {}, input_inline: input_inline ?? {} };
  }

  iter_batches(loaded: Loaded): Batches {
    return [new Batch({ payload: loaded as JsonObject })];
  }

  process_batch(_batch: Batch, _ctx: RunContext): BatchResult | Promise<BatchResult> {
    return new BatchResult({ success: true, metrics: { processed: 1 } });
  }

  finalize(_ctx: RunContext): FinalizeResult | null | Promise<FinalizeResult | null> {
    return new FinalizeResult();
  }

  classify_error(error: unknown): Classified {
    return classifyError(error);
  }
}

/** The form that the worker uses. */
export function streamHandlerOf(handler: RoleHandler): StreamHandler {
  return {
    init: (run) => handler.init(run),
    loadInput: (ref, inline) => handler.load_input(ref, inline),
    iterBatches: (loaded) => handler.iter_batches(loaded),
    processBatch: (batch, ctx) => handler.process_batch(batch, ctx),
    finalize: (ctx) => handler.finalize(ctx),
    classifyError: (error) => handler.classify_error(error),
  };
}

const batchFields: ReadonlySet<string> = new Set(["batch_uid", "batchUid", "payload", "finishes"]);

/** Refuses other values. They would all become empty batches with the same name, and all except one would be lost without an error. */
export function batchOf(value: Batch | BatchFields): Batch {
  if (value instanceof Batch) return value;
  const expected = 'expected { batch_uid: "...", payload: { ... } }: what a batch holds belongs into its payload';
  if (!isObject(value)) throw new TypeError(`A batch is ${value === null ? "null" : `of the type ${typeof value}`}, ${expected}.`);
  const unknown = Object.keys(value).find((name) => !batchFields.has(name));
  if (unknown !== undefined) throw new TypeError(`A batch has the field ${JSON.stringify(unknown)}, ${expected}.`);
  return new Batch(value);
}

/** An object with a success flag is a result. Any other value is the metrics of a successful batch. */
export function resultOf(value: unknown): BatchResult {
  if (value instanceof BatchResult) return value;
  if (isObject(value) && typeof value.success === "boolean") return new BatchResult(value as { success: boolean });
  return new BatchResult({ success: true, metrics: metricsOf(value) });
}

export function finalOf(value: unknown): FinalizeResult {
  if (value instanceof FinalizeResult) return value;
  if (isObject(value) && isObject(value.metrics) && Object.keys(value).every((key) => /^(metrics|artifacts_?[rR]ef)$/.test(key))) {
    return new FinalizeResult(value);
  }
  return new FinalizeResult({ metrics: metricsOf(value) });
}

/** Metrics are an object; any other value is wrapped in one. */
export function metricsOf(value: unknown): object {
  if (value === undefined || value === null) return {};
  return typeof value === "object" && !Array.isArray(value) ? value : { result: value };
}
