// One request of the runtime and its answer, which is plain JSON or a stream of events. The first event opens the stream. A component that
// never calls back is answered in JSON, which costs less. The last message ends the answer.

import type { ServerResponse } from "node:http";
import type { Clock } from "../../../../core/clock.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import { handOutIn, instanceHeader } from "../../wire/http/headers.ts";
import { eventText } from "../../wire/json-rpc.ts";

/** Bytes that may wait in this process for a reader that is slower than the component. */
const unsentBytesMax = 256 * 1024 * 1024;
/** A reader that takes longer to receive a response blocks a slot, so its connection is cut. */
const flushMsMax = 60_000;

export class Exchange {
  readonly #response: ServerResponse;
  readonly #instanceId: string;
  readonly #clock: Clock;
  readonly #onGone = new Set<() => void>();
  #gone = false;

  constructor(response: ServerResponse, instanceId: string, clock: Clock) {
    this.#response = response;
    this.#clock = clock;
    this.#instanceId = instanceId;
    response.once("close", () => this.#closed());
  }

  /** Called when the connection is closed: Node reports that only for the first of several requests on it. */
  lost(): void {
    this.#closed();
  }

  /** The hand-out that the caller names in a header; undefined for callers other than our servers. */
  get handOut(): string | undefined {
    return handOutIn(this.#response.req.headers);
  }

  /** True when the caller disconnected before its answer was complete. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Calls `listener` when the caller disconnects, or at once when it already has. The returned function removes the listener. */
  onGone(listener: () => void): () => void {
    if (this.#gone) listener();
    else this.#onGone.add(listener);
    return () => this.#onGone.delete(listener);
  }

  /** True once the last message was written, whether or not it arrived. */
  get answered(): boolean {
    return this.#response.writableEnded;
  }

  /**
   * Sends the message as JSON or as the last event. Resolves with true when it has left this process, and with false when it was not
   * delivered.
   */
  answer(json: string, status = 200, headers: Readonly<Record<string, string>> = {}): Promise<boolean> {
    const response = this.#response;
    if (this.#gone || response.writableEnded) return Promise.resolve(false);
    if (response.headersSent) return this.#end(eventText(json));
    response.writeHead(status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(json),
      [instanceHeader]: this.#instanceId,
      ...headers,
    });
    return this.#end(json);
  }

  /** Sends a message of ours to the runtime. Throws when that is not possible. */
  send(json: string): void {
    const response = this.#response;
    if (this.#gone || response.writableEnded) {
      throw new LongshoreError("LONGSHORE_CANCELLED", "The runtime has disconnected, so it cannot be called.");
    }
    if (response.writableLength + json.length > unsentBytesMax) {
      throw new LongshoreError("LONGSHORE_LIMIT", `More than ${unsentBytesMax} bytes wait to be sent to the runtime.`);
    }
    if (!response.headersSent) {
      const headers = { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" };
      response.writeHead(200, { ...headers, [instanceHeader]: this.#instanceId });
    }
    response.write(eventText(json));
  }

  #end(text: string): Promise<boolean> {
    const response = this.#response;
    const left = new Promise<boolean>((resolve) => {
      const settle = (arrived: boolean) => {
        disarm();
        resolve(arrived);
      };
      const disarm = this.#clock.at(this.#clock.now() + flushMsMax, () => response.destroy());
      // Node emits `finish` for a response that was cut off as well.
      response.once("finish", () => settle(!response.destroyed));
      response.once("close", () => settle(response.writableFinished && !response.destroyed));
      this.onGone(() => settle(false));
    });
    response.end(text);
    return left;
  }

  #closed(): void {
    if (this.#gone || this.#response.writableFinished) return;
    this.#gone = true;
    for (const listener of this.#onGone) listener();
    this.#onGone.clear();
  }
}
