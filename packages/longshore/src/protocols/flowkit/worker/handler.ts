// What a role does with its input, in the forms in which it may be written: as an object of functions, as a generator over batches, or as a
// class with the names of the reference. The worker knows the first only.

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

/** What a handler has made of its input; `input_inline` may propose an adapter for when the command names none. */
export type Loaded = { readonly [field: string]: unknown };

/** A sequence of batches. */
export type Batches = AsyncIterable<Batch | BatchFields> | Iterable<Batch | BatchFields>;

/** Everything but `processBatch` may be left out. */
export interface StreamHandler {
  init?(run: RunInfo): unknown;
  /** Both as they came, as `{ input_ref, input_inline }`, by default. */
  loadInput?(inputRef: JsonObject | null, inputInline: JsonObject | null): Loaded | Promise<Loaded>;
  /** The input where no adapter was chosen; one batch of what was loaded by default. */
  iterBatches?(loaded: Loaded, ctx: RunContext): Batches;
  /** What it returns is the batch's metrics, or a BatchResult. Throwing fails the batch, and with it the node. */
  processBatch(batch: Batch, ctx: RunContext): unknown;
  /** The node's own metrics, or a FinalizeResult. */
  finalize?(ctx: RunContext): unknown;
  /** What an error is called, and whether trying again is of no use. */
  classifyError?(error: unknown): Classified;
}

/**
 * Takes batches and yields metrics; what it returns are the node's own. A later attempt is given all batches again but those that it has
 * marked as finished, by `yield batch.result(metrics)` or `batch.skip()`.
 */
export type BatchGenerator = (batches: AsyncIterable<ReadBatch>, ctx: RunContext) => AsyncGenerator<unknown, unknown, void>;

/** The base of handlers written with the names of the reference. */
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

/** As the worker calls it. */
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

/** Something else would be a batch that holds nothing, and all such have the same name: all but one would be lost without a word. */
export function batchOf(value: Batch | BatchFields): Batch {
  if (value instanceof Batch) return value;
  const expected = 'expected { batch_uid: "...", payload: { ... } }: what a batch holds belongs into its payload';
  if (!isObject(value)) throw new TypeError(`A batch is ${value === null ? "null" : `of the type ${typeof value}`}, ${expected}.`);
  const unknown = Object.keys(value).find((name) => !batchFields.has(name));
  if (unknown !== undefined) throw new TypeError(`A batch has the field ${JSON.stringify(unknown)}, ${expected}.`);
  return new Batch(value);
}

/** An object with a success flag is a result; any other is the metrics of a success. */
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

/** Metrics are an object; any other return value is put into one. */
export function metricsOf(value: unknown): object {
  if (value === undefined || value === null) return {};
  return typeof value === "object" && !Array.isArray(value) ? value : { result: value };
}
