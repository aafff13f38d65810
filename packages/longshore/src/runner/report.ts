// Delivers an outcome. A report whose answer is not known is repeated, with growing pauses, until the hold would be over: before that
// the result is still wanted, after that somebody else may be at work.

import { type Backoff, backoffMs } from "../backoff.ts";
import { type Clock, pause } from "../clock.ts";
import { LongshoreError, toError } from "../errors.ts";
import type { Hold } from "./heartbeat.ts";
import type { Assignment, Outcome, ReportAnswer } from "./transport.ts";

const retryPolicy: Backoff = { kind: "exponential", delayMs: 200, maxMs: 5_000, jitter: 0.2 };
/** How long a report is repeated where the protocol knows no hold that would end: longer than a restart of the peer takes. */
const patienceMs = 90_000;
/** However long beats keep renewing the hold, a peer that takes beats and no report for this long is broken. */
const patienceMsMax = 600_000;

export interface ReportOptions {
  readonly clock: Clock;
  readonly random: () => number;
  readonly hold: Hold | undefined;
  readonly wantNext: () => boolean;
  /** Aborts when this worker cannot wait any longer. */
  readonly giveUp: AbortSignal;
  readonly failing: (what: string, error: unknown) => void;
  readonly working: (what: string) => void;
}

/** Undefined when the report could not be delivered while it was wanted. */
export async function deliver(assignment: Assignment, first: Outcome, options: ReportOptions): Promise<ReportAnswer | undefined> {
  const { clock, giveUp } = options;
  const startedMs = clock.now();
  let outcome = first;
  for (let retry = 1; ; retry++) {
    try {
      const answer = await assignment.report(outcome, { wantNext: options.wantNext(), signal: giveUp });
      options.working("report");
      return answer;
    } catch (error) {
      options.failing("report", error);
      if (isRefusal(error) && outcome === first) {
        outcome = refused(error);
        continue;
      }
    }
    const untilMs = endOfPatience(options.hold, startedMs);
    const now = clock.now();
    if (giveUp.aborted || now >= untilMs) return undefined;
    await pause(clock, Math.min(backoffMs(retryPolicy, retry, options.random()), untilMs - now), giveUp);
  }
}

function endOfPatience(hold: Hold | undefined, startedMs: number): number {
  if (hold === undefined) return startedMs + patienceMs;
  // Beats end when the hold is lost, so its end stands still from then on.
  return hold.ended ? 0 : Math.min(hold.untilMs, startedMs + patienceMsMax);
}

/** The peer will never take this outcome, however often it is sent. */
function isRefusal(error: unknown): error is LongshoreError {
  return error instanceof LongshoreError && (error.code === "LONGSHORE_BAD_OUTPUT" || error.code === "LONGSHORE_LIMIT");
}

function refused(error: LongshoreError): Outcome {
  const message = `The result could not be reported: ${toError(error).message}`;
  return { kind: "failed", retryable: false, error: { message, code: error.code, stack: undefined } };
}
