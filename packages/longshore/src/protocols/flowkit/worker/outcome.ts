// Converts the end of an attempt to the event that reports it.

import type { Outcome } from "../../../runner/transport.ts";
import { type Classified, reasons } from "./classify.ts";
import type { RunFailed } from "./run-failure.ts";

export type EndEvent =
  | { readonly kind: "cancelled"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string; readonly permanent: boolean; readonly error: string | null };

export interface EndFacts {
  /** The failure of a handler that processes batches: it already has its name. */
  readonly failure: RunFailed | undefined;
  readonly cancelReason: string | undefined;
  readonly classify: (error: unknown) => Classified;
}

/** A cancel is always reported as a cancel. A failure with a name keeps it. Any other failure gets the name that `classify` returns. */
export function failureEvent(outcome: Exclude<Outcome, { kind: "done" }>, { failure, cancelReason, classify }: EndFacts): EndEvent {
  // The transport does not support deferrals, so no deferral arrives here.
  if (outcome.kind === "deferred") return { kind: "failed", reason: reasons.unexpected, permanent: false, error: "deferred" };
  const { error, retryable } = outcome;
  const failed = (reason: string, permanent: boolean): EndEvent => ({ kind: "failed", reason, permanent, error: error.message });
  switch (error.code) {
    case "LONGSHORE_CANCELLED":
      return { kind: "cancelled", reason: cancelReason ?? "cancelled" };
    case "LONGSHORE_SHUTDOWN":
      return { kind: "cancelled", reason: "shutdown" };
    case "LONGSHORE_NO_HANDLER":
      return failed(reasons.noHandler, true);
    case "LONGSHORE_DEADLINE":
      return failed(reasons.timeout, false);
    case "LONGSHORE_BAD_OUTPUT":
    case "LONGSHORE_LIMIT":
      return failed(reasons.badOutput, true);
    default: {
      if (failure !== undefined) return { kind: "failed", reason: failure.reason, permanent: failure.permanent, error: failure.message };
      const [reason, permanent] = classify(Object.assign(new Error(error.message), { name: error.name, code: error.code }));
      if (permanent || retryable) return failed(reason, permanent);
      return failed(reason === reasons.unexpected ? reasons.terminal : reason, true);
    }
  }
}
