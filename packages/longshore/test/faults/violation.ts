// The report of a broken promise: its rule, its subject, and the lines of the histories that prove it.
import type { Entry } from "./history.ts";

export type RuleName =
  | "acknowledged-run-kept"
  | "acknowledged-completion-kept"
  | "acknowledged-failure-kept"
  | "acknowledged-cancel-kept"
  | "acknowledged-line-kept-once"
  | "one-accepted-completion"
  | "accepted-from-newest-hold"
  | "accepted-within-term"
  | "repeats-are-answered-alike"
  | "holds-never-overlap"
  | "no-start-after-cancel"
  | "dependencies-first"
  | "success-is-complete"
  | "one-run-a-start"
  | "restarted-run-goes-on"
  | "every-run-ends"
  | "no-batch-lost"
  | "no-batch-twice"
  | "nothing-missed"
  | "progress"
  | "counted-was-processed"
  | "counted-from-newest-attempt"
  | "sums-are-right";

export interface Violation {
  rule: RuleName;
  /** The task (`run/step`) or the run that it is about. */
  subject: string;
  message: string;
  /** Lines of the histories, as `file:line {...}`. */
  evidence: string[];
}

export function violation(rule: RuleName, subject: string, message: string, evidence: readonly (Entry | undefined)[]): Violation {
  const lines = evidence.filter((entry) => entry !== undefined).map(({ where, ...said }) => `${where} ${JSON.stringify(said)}`);
  return { rule, subject, message, evidence: lines };
}

/**
 * All processes and the server read one machine's clock. So this covers only rounding to milliseconds, and corrections of that clock
 * between two readings. It is small beside the shortest term of a lease in these tests, one second.
 */
export const CLOCK_TOLERANCE_MS = 50;
