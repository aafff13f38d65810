// How verdicts are spelt as HTTP statuses on workflow-graph's paths, in both directions, and the header names that are ours.
// The wire knows two answers to a report: 200 and 409 ("lease gone", with an empty body). 404 never means a lost lease here.

import type { Verdict } from "../../../core/verdict.ts";

/** `again` is 409 as well: the contract answers a repeated report so. Only a client that proves the repeat gets 200 (repeated-reports.ts). */
export const statusOfVerdict: { readonly [verdict in Verdict]: 200 | 409 } = {
  ok: 200,
  cancel: 200,
  again: 409,
  stale: 409,
  busy: 409,
  gone: 409,
};

/** The other way round, for the worker half. Undefined: the status does not concern the lease, so the answer is not known. */
export function verdictOfStatus(status: number): Verdict | undefined {
  if (status === 200) return "ok";
  return status === 409 ? "stale" : undefined;
}

/** Ours, on answers to register and claim: the longest `wait_secs` that the server honours. Absent on servers without long polls. */
export const waitHeader = "longshore-wait";

/** Ours, on complete and fail: the same report again with the same key is answered 200 when the first one was applied. */
export const idempotencyHeader = "idempotency-key";
