// The calls of a node that have no answer yet, in their order. They are kept until an owner answers them: this one or a later one.

import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { LinkLimits } from "./limits.ts";
import { repeatMark } from "./messages.ts";

export interface PendingCall {
  /** The message, as it is sent and sent again. */
  readonly text: string;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly repeat: boolean;
  readonly signal: AbortSignal | undefined;
  /** True once it was sent on any link. */
  sent: boolean;
  /** Since when it waits for a link. It is rejected `waitMs` later. Has no meaning while there is a link. */
  waitsFromMs: number;
  onAbort: (() => void) | undefined;
}

export class PendingCalls {
  readonly #clock: Clock;
  readonly #limits: LinkLimits;
  readonly #reason: () => string;
  readonly #abort: (id: number) => void;
  readonly #calls = new Map<number, PendingCall>();
  #chars = 0;
  #linked = false;
  #cancelWait: (() => void) | undefined;
  /** Since the start. */
  begun = 0;
  resent = 0;

  /** `reason` returns why there is no link, for error messages. `abort` notifies the owner that a caller does not need the answer any more. */
  constructor(clock: Clock, limits: LinkLimits, reason: () => string, abort: (id: number) => void) {
    this.#clock = clock;
    this.#limits = limits;
    this.#reason = reason;
    this.#abort = abort;
  }

  get size(): number {
    return this.#calls.size;
  }

  /** Throws when there is no room. */
  add(id: number, call: PendingCall): void {
    this.#checkRoom(call.text.length);
    this.begun++;
    this.#calls.set(id, call);
    this.#chars += call.text.length;
    if (call.signal !== undefined) {
      call.onAbort = () => {
        if (this.#linked) this.#abort(id);
        else this.take(id)?.reject(call.signal?.reason);
      };
      call.signal.addEventListener("abort", call.onAbort, { once: true });
    }
    if (this.#linked) return;
    call.waitsFromMs = this.#clock.now();
    this.#armWait();
  }

  /** Removes and returns a call that is answered; undefined when it is not waiting any more. */
  take(id: number): PendingCall | undefined {
    const call = this.#calls.get(id);
    if (call === undefined) return undefined;
    this.#calls.delete(id);
    this.#chars -= call.text.length;
    if (call.onAbort !== undefined) call.signal?.removeEventListener("abort", call.onAbort);
    return call;
  }

  /** To be called when there is a link: sends all waiting calls in order. */
  sendAll(send: (text: string) => void): void {
    this.#linked = true;
    this.#cancelWait?.();
    this.#cancelWait = undefined;
    for (const call of this.#calls.values()) {
      if (call.sent) this.resent++;
      send(call.sent ? `${call.text.slice(0, -1)},${repeatMark}]` : call.text);
      call.sent = true;
    }
  }

  /** Rejects what must not be sent again; the rest waits for the next link. */
  linkBroke(reason: string): void {
    this.#linked = false;
    const now = this.#clock.now();
    for (const [id, call] of [...this.#calls]) {
      // The caller has aborted the call, and the owner aborts all calls of a link that breaks.
      if (call.signal?.aborted) this.take(id)?.reject(call.signal.reason);
      else if (!call.repeat) this.take(id)?.reject(unknownOutcome(reason));
      else call.waitsFromMs = now;
    }
    this.#armWait();
  }

  rejectAll(error: Error): void {
    for (const id of [...this.#calls.keys()]) this.take(id)?.reject(error);
    this.#cancelWait?.();
    this.#cancelWait = undefined;
  }

  #checkRoom(chars: number): void {
    const { calls, callBytes } = this.#limits;
    if (this.#calls.size >= calls) {
      throw new LongshoreError("LONGSHORE_LIMIT", `${calls} calls wait for the owner of the data already; call again later.`);
    }
    if (this.#chars + chars > callBytes) {
      throw new LongshoreError("LONGSHORE_LIMIT", `Calls of ${callBytes} bytes wait for the owner of the data already; call again later.`);
    }
  }

  /** One timer, for the call that has waited longest: calls wait in the order of the map. */
  #armWait(): void {
    if (this.#linked || this.#cancelWait !== undefined) return;
    const [first] = this.#calls.values();
    if (first === undefined) return;
    this.#cancelWait = this.#clock.at(first.waitsFromMs + this.#limits.waitMs, () => {
      this.#cancelWait = undefined;
      this.#rejectOverdue();
      this.#armWait();
    });
  }

  #rejectOverdue(): void {
    const { waitMs } = this.#limits;
    const untilMs = this.#clock.now() - waitMs;
    for (const [id, { waitsFromMs }] of [...this.#calls]) {
      if (waitsFromMs > untilMs) return;
      this.take(id)?.reject(
        new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", `The owner of the data could not be reached for ${waitMs} ms. ${this.#reason()}`),
      );
    }
  }
}

function unknownOutcome(reason: string): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_STORE_UNAVAILABLE",
    `The link to the owner broke before its answer, so the call may have been carried out or not. ${reason}`,
  );
}
