// How verdicts map to HTTP statuses on workflow-graph's paths, in both directions, and the names of our own headers. The wire has two
// replies to a report: 200 and 409 ("lease gone", with an empty body). 404 never means a lost lease here.

import type { Verdict } from "../../../core/verdict.ts";

/**
 * `again` is also 409, as the contract requires for a repeated report. Only a client that proves that it repeats the same report gets 200
 * (repeated-reports.ts).
 */
export const statusOfVerdict: { readonly [verdict in Verdict]: 200 | 409 } = {
  ok: 200,
  cancel: 200,
  again: 409,
  stale: 409,
  busy: 409,
  gone: 409,
};

/** The reverse, for the worker half. Undefined: the status does not concern the lease, so the verdict is unknown. */
export function verdictOfStatus(status: number): Verdict | undefined {
  if (status === 200) return "ok";
  return status === 409 ? "stale" : undefined;
}

/** Ours, on replies to register and claim: the longest `wait_secs` that the server accepts. Absent on servers without long polls. */
export const waitHeader = "longshore-wait";

/** Ours, on replies to register: how many reports the server takes in one request. Absent on servers that take one. */
export const reportsHeader = "longshore-reports";

/** Ours, on the reply to a result that came with a turn: the server has accepted the turn. */
export const turnHeader = "longshore-turn";

/** On a response that hands out a job, from a server that writes spans: the span of the attempt, as W3C Trace Context. */
export const traceHeader = "traceparent";

/** Ours, on complete and fail: a repetition with the same key gets 200 when the first report was applied. */
export const idempotencyHeader = "idempotency-key";
