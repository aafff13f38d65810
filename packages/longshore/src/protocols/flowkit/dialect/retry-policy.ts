// How often a node is tried, and what of it is final. The reference documents `max` and `permanent_on` and enforces neither; here both hold.

import type { RetryPolicy } from "../../../engine/run/plan.ts";
import type { Fields } from "./fields.ts";

export interface RetrySettings {
  /** How often it is tried again after a failure. */
  readonly max: number;
  readonly backoff_sec: number;
  /** Reasons for which it is not tried again. */
  readonly permanent_on: readonly string[];
  /** Ours: how many workers may vanish with it before it fails. */
  readonly lost: number;
  /** Ours: what becomes of a batch that keeps failing; null leaves it to the node's own budget, as the reference does. */
  readonly batch: BatchSettings | null;
}

export interface BatchSettings {
  /** How often a batch is tried again; that spends nothing of the node's own budget. */
  readonly max: number;
  /** After that it becomes a dead letter with its reason and the node continues without it; otherwise the node fails. */
  readonly dead_letter: boolean;
}

/** The reference's defaults. */
const maxDefault = 2;
const backoffSecDefault = 300;
const permanentDefault = ["bad_input", "schema_mismatch"];
/** A worker that crashes is not the node's fault; one that takes ten down is another matter. */
const lostDefault = 10;
/** More than this is a loop. */
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
