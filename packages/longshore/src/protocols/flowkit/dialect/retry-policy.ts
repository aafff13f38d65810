// How often a node is tried, and which failures are final. The reference documents `max` and `permanent_on` but does not apply them. Here
// both apply.

import type { RetryPolicy } from "../../../engine/run/plan.ts";
import type { Fields } from "./fields.ts";

export interface RetrySettings {
  /** Retries after a failure. */
  readonly max: number;
  readonly backoff_sec: number;
  /** Reasons that are not retried. */
  readonly permanent_on: readonly string[];
  /** Our addition: how often its worker may be lost before the node fails. */
  readonly lost: number;
  /** Our addition: what happens to a batch that keeps failing. Null uses the node's own budget, as in the reference. */
  readonly batch: BatchSettings | null;
}

export interface BatchSettings {
  /** Retries of a batch; they do not count against the node's budget. */
  readonly max: number;
  /** After that the batch becomes a dead letter with its reason, and the node continues without it. When false, the node fails. */
  readonly dead_letter: boolean;
}

/** As in the reference. */
const maxDefault = 2;
const backoffSecDefault = 300;
const permanentDefault = ["bad_input", "schema_mismatch"];
/** A crash of one worker is not the fault of the node, but ten crashes are. */
const lostDefault = 10;
/** Maximum number of retries. More would be an endless loop. */
const triesMax = 10_000;
/** A month. */
const backoffSecMax = 2_592_000;

export function readRetry(fields: Fields): RetrySettings {
  fields.noneMisspelt(["max", "backoff_sec", "permanent_on", "lost", "batch"]);
  return {
    max: fields.whole("max", maxDefault, triesMax),
    backoff_sec: fields.number("backoff_sec", backoffSecDefault, backoffSecMax),
    permanent_on: fields.value("permanent_on") === null ? permanentDefault : fields.texts("permanent_on"),
    lost: fields.whole("lost", lostDefault, triesMax),
    batch: fields.value("batch") === null ? null : readBatch(fields.object("batch")),
  };
}

function readBatch(fields: Fields): BatchSettings {
  fields.noneMisspelt(["max", "dead_letter"]);
  return { max: fields.whole("max", maxDefault, triesMax), dead_letter: fields.flag("dead_letter") };
}

export function retryPolicyOf(settings: RetrySettings): RetryPolicy {
  return { failures: settings.max, lost: settings.lost, backoff: { kind: "fixed", delayMs: backoffMsOf(settings) } };
}

export function backoffMsOf({ backoff_sec }: RetrySettings): number {
  return Math.round(backoff_sec * 1_000);
}
