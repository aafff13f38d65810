// The steps of a run, the same for every protocol: init, load the input, select its source, process each batch, finalize. Results are
// written to `out`. Returns the final metrics or throws.

import { LongshoreError, toError } from "../../../core/errors.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import { toJson } from "../../../core/json/to-json.ts";
import type { ArgDefaults } from "../wire/adapter-args.ts";
import type { Adapters, Upstream } from "../wire/adapters/adapter.ts";
import { isUnknownSource, UpstreamFailed } from "../wire/artifacts/artifacts.ts";
import { Batch, type BatchFields } from "../wire/batch.ts";
import { dedupIds } from "../wire/hash.ts";
import { type Classified, classifyError, reasons } from "./classify.ts";
import { type BatchOutput, generate, jsonObject } from "./generate.ts";
import { type Batches, type BatchGenerator, batchOf, finalOf, type Loaded, type RunInfo, resultOf, type StreamHandler } from "./handler.ts";
import type { WorkerLog } from "./log.ts";
import type { RunContext } from "./run-context.ts";
import { RefusedResult, RunFailed } from "./run-failure.ts";
import { type Route, selectInput } from "./select-input.ts";

export type StreamWork =
  | { readonly kind: "handler"; readonly handler: StreamHandler }
  | { readonly kind: "generator"; readonly generate: BatchGenerator };

export interface StreamRun {
  readonly work: StreamWork;
  readonly info: RunInfo;
  readonly inputRef: JsonObject | null;
  readonly inputInline: JsonObject | null;
  /** Batches to skip. */
  readonly deadLetters: ReadonlySet<string>;
  readonly adapters: Adapters;
  readonly defaults: ArgDefaults;
  readonly upstream: Upstream;
  readonly out: BatchOutput;
  readonly ctx: RunContext;
  /** True when the worker stops: the run ends between two batches, and another worker continues. */
  readonly draining: () => boolean;
  readonly log: WorkerLog;
}

/** The final result of a run. */
export interface Final {
  readonly metrics: JsonObject;
  readonly artifactsRef: JsonObject | null;
}

/** Throws the signal's reason, LONGSHORE_SHUTDOWN between two batches, or RunFailed. */
export async function drive(run: StreamRun): Promise<Final> {
  const { work, out, ctx } = run;
  const classify = work.kind === "handler" ? (work.handler.classifyError?.bind(work.handler) ?? classifyError) : classifyError;
  try {
    const input = await open(run);
    const value =
      work.kind === "handler"
        ? await processAll(run, work.handler, input, classify)
        : await generate(run, work.generate, eachUsable(run, input));
    ctx.signal.throwIfAborted();
    const { metrics, artifacts_ref } = finalOf(value);
    return { metrics: jsonObject(metrics), artifactsRef: artifacts_ref };
  } catch (thrown) {
    ctx.signal.throwIfAborted();
    // Results are sent before the end of the run. A failure here is already being thrown, or is less important than the error that is
    // thrown.
    await out.flush().catch(() => {});
    throw failureOf(thrown, classify);
  }
}

/** The handler classifies its own errors; errors of the worker have a name already. */
function failureOf(thrown: unknown, classify: (error: unknown) => Classified): Error {
  if (thrown instanceof RunFailed) return thrown;
  const error = toError(thrown);
  if (error instanceof UpstreamFailed) return new RunFailed(reasons.upstreamFailed, true, error.message, error);
  if (isUnknownSource(error)) return new RunFailed(reasons.badArgs, true, error.message, error);
  if (isOurs(error)) return error;
  const [reason, permanent] = classify(thrown);
  return new RunFailed(reason, permanent, error.message, error);
}

/** Cancels, shutdowns and lost holds end a run but are not failures of it. */
function isOurs({ code }: Partial<LongshoreError>): boolean {
  return code === "LONGSHORE_CANCELLED" || code === "LONGSHORE_SHUTDOWN" || code === "LONGSHORE_LEASE_LOST";
}

/** The error that ends a run when its worker stops. */
export function handedBack(): LongshoreError {
  return new LongshoreError("LONGSHORE_SHUTDOWN", "The worker stops between two batches; another one continues.");
}

interface Input {
  readonly batches: AsyncIterable<Batch | BatchFields>;
  /** True when the batches come from an adapter. */
  readonly adapted: boolean;
  empty: boolean;
}

async function open(run: StreamRun): Promise<Input> {
  const { work, info, inputRef, inputInline, adapters, defaults, upstream, ctx, log } = run;
  const handler: Partial<StreamHandler> = work.kind === "handler" ? work.handler : {};
  await handler.init?.(info);
  const loaded: Loaded = (await handler.loadInput?.(inputRef, inputInline)) ?? {
    input_ref: inputRef ?? {},
    input_inline: inputInline ?? {},
  };
  const route: Route | undefined = selectInput({ inputInline, loaded, adapters, defaults, log });
  const whole = [new Batch({ payload: loaded as JsonObject })];
  const batches: Batches = route?.adapter.open(route.args, upstream) ?? handler.iterBatches?.(loaded, ctx) ?? whole;
  return { batches: batches as Input["batches"], adapted: route !== undefined, empty: true };
}

/** The batch with a name; undefined for a batch to skip. The run may end between two batches. */
function usable({ ctx, deadLetters, log, draining }: StreamRun, input: Input, each: Batch | BatchFields): Batch | undefined {
  ctx.signal.throwIfAborted();
  if (draining()) throw handedBack();
  input.empty = false;
  const batch = named(batchOf(each));
  if (input.adapted) log("debug", "worker.adapter.batch", { batch_uid: batch.batch_uid });
  if (!deadLetters.has(batch.batch_uid as string)) return batch;
  log("warning", "worker.batch.dead_letter_skipped", { batch_uid: batch.batch_uid });
  return undefined;
}

/** Called when there are no more batches. */
function exhausted({ ctx, log }: StreamRun, { adapted, empty }: Input): void {
  if (adapted) log("info", "worker.upstream.status", { upstream_empty: empty });
  ctx.signal.throwIfAborted();
}

/** The same as a stream, for generators. */
async function* eachUsable(run: StreamRun, input: Input): AsyncIterable<Batch> {
  for await (const each of input.batches) {
    const batch = usable(run, input, each);
    if (batch !== undefined) yield batch;
  }
  exhausted(run, input);
}

function named(batch: Batch): Batch {
  if (batch.batch_uid !== null && batch.batch_uid !== "") return batch;
  return new Batch({ batch_uid: dedupIds.payload(toJson(batch.payload)), payload: batch.payload, finishes: batch.finishes });
}

async function processAll(
  run: StreamRun,
  handler: StreamHandler,
  input: Input,
  classify: (error: unknown) => Classified,
): Promise<unknown> {
  const { out, ctx } = run;
  for await (const each of input.batches) {
    const batch = usable(run, input, each);
    if (batch === undefined) continue;
    const uid = batch.batch_uid as string;
    let result: Processed;
    try {
      const value = handler.processBatch(batch, ctx);
      // Awaits only promises: awaiting another value would cost more than all other work for a small batch.
      result = processed(isPromise(value) ? await value : value);
    } catch (error) {
      ctx.signal.throwIfAborted();
      result = { failure: [...classify(error), toError(error).message] };
    }
    ctx.signal.throwIfAborted();
    const failure = result.failure ?? refusalOf(() => out.ok(uid, result.metrics, batch.finishes));
    if (failure instanceof Promise) await failure;
    else if (failure !== undefined) {
      const [reason, permanent, message] = failure;
      // Earlier results are sent first.
      await out.flush();
      await out.failed(uid, reason, permanent, message);
      throw new RunFailed(reason, permanent, message ?? reason);
    }
  }
  exhausted(run, input);
  await out.flush();
  return handler.finalize?.(ctx);
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}

/** Returns the reason when the result itself is refused; otherwise the result of `put`. */
function refusalOf(put: () => Promise<void> | undefined): Failure | Promise<void> | undefined {
  try {
    return put();
  } catch (error) {
    if (error instanceof RefusedResult) return [error.reason, error.permanent, error.message];
    throw error;
  }
}

type Failure = readonly [reason: string, permanent: boolean, error: string | null];

type Processed = { readonly metrics: JsonObject; readonly failure?: undefined } | { readonly failure: Failure };

function processed(value: unknown): Processed {
  const { success, metrics, reason_code, permanent, error } = resultOf(value);
  if (!success) return { failure: [reason_code ?? reasons.error, permanent, error] };
  try {
    return { metrics: jsonObject(metrics) };
  } catch (thrown) {
    return { failure: [reasons.badOutput, true, `The metrics of the batch are not JSON: ${toError(thrown).message}`] };
  }
}
