// Passes the results of a run's batches to the writer. Each is serialised once, for its artifact and its event.

import { recordBytesMax } from "../../../core/bus/bus.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import { type PartRef, stretchOf } from "../wire/artifacts/artifacts.ts";
import type { BatchWriter } from "./batch-writer.ts";
import type { AttemptEvents } from "./events.ts";
import type { BatchOutput } from "./generate.ts";
import { RefusedResult } from "./run-failure.ts";

/** Maximum size of an event: leaves room for a record's key and frame. */
const bytesMax = recordBytesMax - 2_048;

export class RunOutput implements BatchOutput {
  readonly #writer: BatchWriter;
  readonly #events: AttemptEvents;
  readonly #tells: boolean;

  /** `tells`: the artifact store needs no events. */
  constructor(writer: BatchWriter, events: AttemptEvents, tells: boolean) {
    this.#writer = writer;
    this.#events = events;
    this.#tells = tells;
  }

  ok(uid: string, metrics: JsonObject, finishes: readonly PartRef[]): Promise<void> | undefined {
    const text = JSON.stringify(metrics);
    const json = this.#tells ? stretchOf(text) : this.#events.batchOk(uid, text);
    if (json.bytes.length > bytesMax) refuseTooLarge(uid, json.bytes.length);
    return this.#writer.put({ part: { uid, meta: metrics, json }, event: this.#tells ? null : json.bytes, finishes });
  }

  async failed(uid: string, reason: string, permanent: boolean, error: string | null): Promise<void> {
    await this.#events.send([this.#events.batchFailed(uid, reason, permanent, error)]);
  }

  flush(finishes?: readonly PartRef[]): Promise<void> {
    return this.#writer.flush(finishes);
  }
}

function refuseTooLarge(uid: string, bytes: number): never {
  const message = `The result of batch ${JSON.stringify(uid)} has ${bytes} bytes, expected at most ${bytesMax}: make smaller batches, or keep the data elsewhere and return where it is.`;
  throw new RefusedResult("batch_too_large", true, message);
}
