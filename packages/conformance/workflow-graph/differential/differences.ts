// Where our answers differ from the reference's on purpose, and why. A difference that is not listed fails the test, and so does a
// listed one that is gone. Numbers in brackets are the scenarios that tests of this protocol are tagged with.
import type { Difference, Plain } from "./compare.ts";

export interface Intended {
  reason: string;
  differences: readonly Difference[];
}

const jobStatus = (index: number, reference: string, ours: string): Difference => ({ at: `body.jobs.${index}.status`, reference, ours });

/** The whole answer to a claim, where the other side answers null. */
const givenOut = (jobId: string, more: { [key: string]: Plain }): Plain => ({
  job: {
    job_id: jobId,
    workflow_id: "<id>",
    command: `echo ${jobId}`,
    required_labels: [],
    retry_policy: { max_retries: 0, backoff: "None" },
    attempt: 0,
    upstream_outputs: {},
    enqueued_at_ms: "<time>",
    delayed_until_ms: 0,
    ...more,
  },
  lease: { lease_id: "<id>", job_id: jobId, workflow_id: "<id>", worker_id: "w1", ttl_secs: 30, granted_at_ms: "<time>" },
});

/** By `chapter / step`. */
export const intended: Readonly<Record<string, Intended>> = {
  "an empty queue / cancel of an unknown workflow": {
    reason: "The documents promise 404; a cancel that reaches nothing must not look like one that worked [G45].",
    differences: [{ at: "status", reference: 202, ours: 404 }],
  },
  "an empty queue / logs of an unknown lease": {
    reason: "Anyone could write into any job's log; a lease that never existed is refused [G48].",
    differences: [{ at: "status", reference: 200, ours: 409 }],
  },
  "retry of a root / finished": {
    reason: "The status tells the attempt that really ran [G33].",
    differences: [{ at: "body.jobs.0.attempt", reference: 0, ours: 1 }],
  },
  "labels and retries of a dependent / a worker without the label": {
    reason: "A dependent keeps its labels [G21]; the reference forgets them and its retries.",
    differences: [{ at: "body", reference: givenOut("b", { upstream_outputs: { a: {} } }), ours: null }],
  },
  "cancel / after the report": {
    reason: "What a worker reports after a cancel does not undo the cancel [G42].",
    differences: [jobStatus(0, "queued", "cancelled")],
  },
  "cancel / it is not run again": {
    reason: "A cancelled job is not tried again [G42].",
    differences: [
      {
        at: "body",
        reference: givenOut("a", { retry_policy: { max_retries: 2, backoff: "None" }, attempt: 1, delayed_until_ms: "<time>" }),
        ours: null,
      },
    ],
  },
  "completion after cancel / after the report": {
    reason: "A late completion is noted and does not undo the cancel [G43].",
    differences: [jobStatus(0, "success", "cancelled")],
  },
  "run after cancel / cancelled": {
    reason: "A cancel belongs to its run; the reference never forgets it [G44].",
    differences: [{ at: "body", reference: true, ours: false }],
  },
  "run twice / a second copy": {
    reason: "Running what is already waiting gives out no second copy of a job [G40].",
    differences: [{ at: "body", reference: givenOut("a", {}), ours: null }],
  },
};
