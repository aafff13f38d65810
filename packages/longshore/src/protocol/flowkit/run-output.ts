// The results of a run's batches on their way to the writer: each is written as JSON once, for its artifact and for its event.

import { recordBytesMax } from "../../bus/bus.ts";
import type { JsonObject } from "../../json.ts";
import type { PartRef } from "./artifacts/artifacts.ts";
import type { BatchWriter } from "./batch-writer.ts";
import type { BatchOutput } from "./drive.ts";
import type { AttemptEvents } from "./events.ts";
import { RefusedResult } from "./run-failed.ts";

/** Room for a record's key and frame. */
const frameBytes = 2_048;

export class RunOutput implements BatchOutput {
  readonly #writer: BatchWriter;
  readonly #events: AttemptEvents;
  readonly #tells: boolean;

  /** `tells`: whoever keeps the artifacts needs no events of them. */
  constructor(writer: BatchWriter, events: AttemptEvents, tells: boolean) {
    this.#writer = writer;
    this.#events = events;
    this.#tells = tells;
  }

  ok(uid: string, metrics: JsonObject, finishes: readonly PartRef[]): Promise<void> | undefined {
    const text = JSON.stringify(metrics);
    const event = this.#tells ? null : this.#events.batchOk(uid, text);
    // A text has at most three bytes for each of its units, so most need no counting.
    if ((event ?? text).length * 3 > recordBytesMax - frameBytes) refuseTooLarge(uid, event ?? text);
    return this.#writer.put({ part: { uid, meta: metrics, text }, event, finishes });
  }

  async failed(uid: string, reason: string, permanent: boolean, error: string | null): Promise<void> {
    await this.#events.send([this.#events.batchFailed(uid, reason, permanent, error)]);
  }

  flush(): Promise<void> {
    return this.#writer.flush();
  }
}

function refuseTooLarge(uid: string, text: string): void {
  const bytes = Buffer.byteLength(text);
  const most = recordBytesMax - frameBytes;
  if (bytes <= most) return;
  const message = `The result of batch ${JSON.stringify(uid)} has ${bytes} bytes, expected at most ${most}: make smaller batches, or keep the data elsewhere and return where it is.`;
  throw new RefusedResult("batch_too_large", true, message);
}
