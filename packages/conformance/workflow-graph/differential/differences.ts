// Where our answers differ from the reference's on purpose, and why. A difference that is not listed fails the test, and so does a
// listed one that is gone. Numbers in brackets are scenarios of the conformance list that our documents cite.
import type { Difference } from "./compare.ts";

export interface Intended {
  reason: string;
  differences: readonly Difference[];
}

const jobStatus = (index: number, reference: string, ours: string): Difference => ({ at: `body.jobs.${index}.status`, reference, ours });

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
  "cancel / after the report": {
    reason: "What a worker reports after a cancel does not undo the cancel [G42].",
    differences: [jobStatus(0, "queued", "cancelled")],
  },
};
