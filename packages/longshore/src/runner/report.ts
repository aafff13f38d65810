// Delivers an outcome. A report without a known reply is repeated with growing delays until the lease ends, because another worker may have
// the task afterwards. A protocol can set its own schedule (`ReportTries`). When the peer says that the lease is over, an earlier try may
// have been accepted, and its reply lost. So the report is sent once more, and its reply shows whether it was.

import { type Backoff, backoffMs } from "../core/backoff.ts";
import { type Clock, pause } from "../core/clock.ts";
import { isRefused, type LongshoreError, toError } from "../core/errors.ts";
import type { Hold } from "./heartbeat.ts";
import type { Assignment, Outcome, ReportAnswer, ReportTries } from "./transport.ts";

const retryPolicy: Backoff = { kind: "exponential", delayMs: 200, maxMs: 5_000, jitter: 0.2 };
/** How long a report is repeated where leases do not end: longer than a restart of the peer takes. */
const patienceMs = 90_000;
/** The time limit even while heartbeats renew the lease: a peer that accepts no report for this long is broken. */
const patienceMsMax = 600_000;

export interface ReportOptions {
  readonly clock: Clock;
  /** When the report began. */
  readonly startedMs: number;
  readonly random: () => number;
  readonly hold: Hold | undefined;
  readonly tries: ReportTries | undefined;
  readonly wantNext: () => boolean;
  /** Aborts when this worker cannot wait any longer. */
  readonly giveUp: AbortSignal;
  readonly failing: (what: string, error: unknown) => void;
  readonly working: (what: string) => void;
  readonly tryFailed: (error: Error, tries: number, durationMs: number) => void;
}

export type Delivery = { readonly kind: "answered"; readonly answer: ReportAnswer } | Undelivered;

/** The outcome could not be delivered in time. */
export interface Undelivered {
  readonly kind: "undelivered";
  readonly outcome: Outcome;
  readonly error: Error;
  readonly tries: number;
}

export async function deliver(assignment: Assignment, first: Outcome, options: ReportOptions): Promise<Delivery> {
  const { clock, startedMs, giveUp } = options;
  let outcome = first;
  let isLast = false;
  for (let tries = 1; ; tries++) {
    const triedMs = tries === 1 ? startedMs : clock.now();
    let error: Error;
    try {
      const answer = await assignment.report(outcome, { wantNext: options.wantNext(), signal: giveUp });
      options.working("report");
      return { kind: "answered", answer };
    } catch (thrown) {
      error = toError(thrown);
      options.failing("report", error);
      options.tryFailed(error, tries, clock.now() - triedMs);
      if (isRefused(error)) {
        // When the failure that replaces the outcome is refused too, no other report can succeed.
        if (outcome !== first) return { kind: "undelivered", outcome: first, error, tries };
        outcome = refused(error);
        continue;
      }
    }
    if (isLast) return { kind: "undelivered", outcome: first, error, tries };
    isLast = options.hold?.isRefused === true;
    const pauseMs = giveUp.aborted ? undefined : isLast ? 0 : pauseBefore(tries + 1, startedMs, options);
    if (pauseMs === undefined) return { kind: "undelivered", outcome: first, error, tries };
    if (pauseMs > 0) await pause(clock, pauseMs, giveUp);
    if (giveUp.aborted) return { kind: "undelivered", outcome: first, error, tries };
  }
}

/** The delay before this try; undefined when there is no further try. */
function pauseBefore(next: number, startedMs: number, { clock, hold, tries, random }: ReportOptions): number | undefined {
  if (tries?.pausesMs !== undefined) return tries.pausesMs[next - 2];
  const endMs = tries === undefined ? endOfPatience(hold, startedMs) : startedMs + tries.patienceMs;
  const leftMs = endMs - clock.now();
  return leftMs <= 0 ? undefined : Math.min(backoffMs(retryPolicy, next - 1, random()), leftMs);
}

function endOfPatience(hold: Hold | undefined, startedMs: number): number {
  if (hold === undefined) return startedMs + patienceMs;
  // Heartbeats end when the lease is lost, so then no time is left.
  return hold.ended ? 0 : Math.min(hold.untilMs, startedMs + patienceMsMax);
}

function refused(error: LongshoreError): Outcome {
  const message = `The result could not be reported: ${error.message}`;
  return { kind: "failed", retryable: false, error: { name: error.name, message, code: error.code, stack: undefined } };
}
