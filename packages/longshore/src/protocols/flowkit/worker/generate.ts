// Runs a generator over batches. This file decides the names of its yields, and when a batch that it has read is finished, so that a later
// attempt does not read it again. The worker cannot see inside the generator: a plain yield may be about any batch that it has read, and
// more yields may follow after the next batch. So only its own marks count:
//
// It yields plainly, or not at all: no batch is finished, and the next attempt begins with all of them. It yields `batch.result(metrics,
// ...others)`: these batches are finished when it has requested the next batch, or has ended, and everything that it has yielded before is
// stored. It calls `batch.skip()`: the same, without a result.
//
// Batches are finished in reading order, each only after all earlier ones: an adapter may split one artifact into several batches, and the
// last one finishes the artifact. The next attempt reads unfinished batches again, and its results replace those with the same name. So
// nothing is lost, and nothing counts twice.

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { toJson } from "../../../core/json/to-json.ts";
import type { PartRef } from "../wire/artifacts/artifacts.ts";
import { type Batch, ReadBatch, ResultOf } from "../wire/batch.ts";
import { type BatchGenerator, metricsOf } from "./handler.ts";
import type { RunContext } from "./run-context.ts";

/** Where the results of batches are written. */
export interface BatchOutput {
  /** Returns a promise when the run should wait. `finishes` are finished once this result and all earlier ones are stored. */
  ok(uid: string, metrics: JsonObject, finishes: readonly PartRef[]): Promise<void> | undefined;
  failed(uid: string, reason: string, permanent: boolean, error: string | null): Promise<void>;
  /** Resolves when all results are written and `finishes` are finished. */
  flush(finishes?: readonly PartRef[]): Promise<void>;
}

/**
 * Maximum number of batches that were read and are not finished. Above it, no batch is finished any more, so a next attempt reads all of
 * them again.
 */
const openMax = 10_000;
/** The name of a result that is yielded before a batch was read. */
const firstName = "first";

interface Open {
  readonly uid: string;
  readonly finishes: readonly PartRef[];
  /** How many results have its name. */
  results: number;
  /** `said`: the generator has marked the batch, which is finished when the next batch is requested. */
  state: "open" | "said" | "over";
}

export async function generate(
  { out, ctx }: { readonly out: BatchOutput; readonly ctx: RunContext },
  make: BatchGenerator,
  batches: AsyncIterable<Batch>,
): Promise<unknown> {
  const ledger = new Ledger();
  const results = make(ledger.read(batches), ctx);
  try {
    for (;;) {
      const { done, value } = await results.next();
      if (done === true) {
        ledger.demanded();
        await out.flush(ledger.due());
        return value;
      }
      const { name, metrics } = ledger.yielded(value);
      const full = out.ok(name, jsonObject(metricsOf(metrics)), ledger.due());
      if (full !== undefined) await full;
      ctx.signal.throwIfAborted();
    }
  } catch (error) {
    // Marks batches as finished, so that they are not processed again. If this fails, they are processed again, which is harmless.
    await out.flush(ledger.due()).catch(() => {});
    throw error;
  }
}

/** The batches that were read, and which of them are finished. */
class Ledger {
  readonly #entries = new WeakMap<ReadBatch, Open>();
  /** In reading order, from the first batch that is not finished. */
  #open: Open[] = [];
  #last: Open = { uid: firstName, finishes: [], results: 0, state: "over" };
  /** Batches that the generator has marked since it last requested a batch. */
  #said: Open[] = [];
  #due: PartRef[] = [];
  #isFull = false;

  async *read(batches: AsyncIterable<Batch>): AsyncIterable<ReadBatch> {
    for await (const batch of batches) {
      const entry: Open = { uid: batch.batch_uid as string, finishes: batch.finishes, results: 0, state: "open" };
      this.#add(entry);
      const read = new ReadBatch(batch, () => this.#say(entry));
      this.#entries.set(read, entry);
      yield read;
      this.demanded();
    }
  }

  yielded(value: unknown): { readonly name: string; readonly metrics: unknown } {
    if (!(value instanceof ResultOf)) return { name: nextName(this.#last), metrics: value };
    const entries = value.batches.map((batch) => this.#entries.get(batch));
    const [first] = entries;
    if (first === undefined || entries.includes(undefined)) {
      throw new TypeError("A result was yielded of a batch that this run has not read: expected those that its generator was given.");
    }
    for (const entry of entries as Open[]) {
      if (entry.state === "over") throw new TypeError(lateResult(entry));
      this.#say(entry);
    }
    return { name: nextName(first), metrics: value.metrics };
  }

  /** Parts that may be finished after everything that was yielded so far; each is returned once. */
  due(): readonly PartRef[] {
    const due = this.#due;
    if (due.length > 0) this.#due = [];
    return due;
  }

  /** The generator requests the next batch, or ends: marked batches get no further results. */
  demanded(): void {
    if (this.#said.length === 0) return;
    for (const entry of this.#said) entry.state = "over";
    this.#said = [];
    let over = 0;
    while (this.#open[over]?.state === "over") this.#due.push(...(this.#open[over++] as Open).finishes);
    if (over > 0) this.#open.splice(0, over);
  }

  #add(entry: Open): void {
    this.#last = entry;
    if (this.#isFull) return;
    this.#open.push(entry);
    if (this.#open.length <= openMax) return;
    this.#isFull = true;
    this.#open = [];
  }

  #say(entry: Open): void {
    if (entry.state !== "open") return;
    entry.state = "said";
    this.#said.push(entry);
  }
}

/** A later attempt does not read the batch again, so such a result could be lost unnoticed. */
function lateResult({ uid }: Open): string {
  const name = JSON.stringify(uid);
  return `A result was yielded of batch ${name}, which the generator had marked as finished before it requested the next one: expected its results before that, or plain yields for all but the last of them.`;
}

function nextName(entry: Open): string {
  entry.results++;
  return entry.results === 1 ? entry.uid : `${entry.uid}.${entry.results}`;
}

export function jsonObject(value: object): JsonObject {
  const json: Json = toJson(value);
  return isObject(json) ? json : { result: json };
}
