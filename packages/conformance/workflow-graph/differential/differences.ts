// Where our responses differ from the reference's on purpose, and why. A difference that is not listed fails the test, and so does a listed
// difference that no longer exists. Ids in brackets are the scenarios that also tag the tests of this protocol.
import type { Difference, Plain } from "./compare.ts";

export interface Intended {
  reason: string;
  differences: readonly Difference[];
}

const jobStatus = (index: number, reference: string, ours: string): Difference => ({ at: `body.jobs.${index}.status`, reference, ours });

/** The whole response to a claim, when the other side returns null. */
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
    delayed_until_ms: "<at once>",
    ...more,
  },
  lease: { lease_id: "<id>", job_id: jobId, workflow_id: "<id>", worker_id: "w1", ttl_secs: 30, granted_at_ms: "<time>" },
});

/** A workflow as the reference returns it. `jobs` are the fields in which its jobs differ from a plain job. */
const created = (...jobs: { [key: string]: Plain }[]): Plain => ({
  id: "<id>",
  name: "n",
  trigger: "t",
  jobs: jobs.map((job) => ({
    ...{ name: job.id ?? null, status: "queued", command: `echo ${job.id}`, depends_on: [], required_labels: [], max_retries: 0 },
    ...{ attempt: 0, duration_secs: null, started_at: null, output: null },
    ...{ metadata: {}, ports: [], children: null, collapsed: false },
    ...job,
  })),
});

const refused = (reference: Plain): Difference[] => [
  { at: "status", reference: 201, ours: 422 },
  { at: "content-type", reference: "application/json", ours: "text/plain; charset=utf-8" },
  { at: "body", reference, ours: "Failed to deserialize the JSON body into the target type" },
];

const foreignPage: readonly Difference[] = [
  { at: "status", reference: 200, ours: 403 },
  { at: "access-control-allow-origin", reference: "*", ours: undefined },
];
const foreignPageText = 'Web pages of "http://example.org" may not call this server; allowed origins are configured at its start.';

const nothingThere: Plain = { error: { code: "LONGSHORE_NOT_FOUND", message: "There is nothing at /api/nothing." } };

/** By `chapter / step`. */
export const intended: Readonly<Record<string, Intended>> = {
  "registration / trailing slash": {
    reason: "The reference looks for a file at every unknown path and so allows GET and HEAD there; ours serves no files.",
    differences: [
      { at: "status", reference: 405, ours: 404 },
      { at: "allow", reference: "GET,HEAD", ours: undefined },
    ],
  },
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
    differences: [jobStatus(0, "queued", "cancelled"), { at: "body.jobs.0.started_at", reference: null, ours: "<time>" }],
  },
  "cancel / it is not run again": {
    reason: "A cancelled job is not tried again [G42].",
    differences: [
      {
        at: "body",
        reference: givenOut("a", { retry_policy: { max_retries: 2, backoff: "None" }, attempt: 1 }),
        ours: null,
      },
    ],
  },
  "completion after cancel / after the report": {
    reason: "A late completion is noted and does not undo the cancel [G43].",
    differences: [jobStatus(0, "success", "cancelled"), { at: "body.jobs.0.duration_secs", reference: 0, ours: null }],
  },
  "run after cancel / cancelled": {
    reason: "A cancel belongs to its run; the reference never forgets it [G44].",
    differences: [{ at: "body", reference: true, ours: false }],
  },
  "run twice / a second copy": {
    reason: "Running what is already waiting gives out no second copy of a job [G40].",
    differences: [{ at: "body", reference: givenOut("a", {}), ours: null }],
  },
  "creating workflows / cycle": {
    reason: "Jobs that wait for each other could never run [G37].",
    differences: refused(created({ id: "a", depends_on: ["b"] }, { id: "b", depends_on: ["a"] })),
  },
  "creating workflows / self-dependency": {
    reason: "A job that waits for itself could never run [G37].",
    differences: refused(created({ id: "a", depends_on: ["a"] })),
  },
  "creating workflows / unknown dependency": {
    reason: "A job that waits for nobody could never run [G37].",
    differences: refused(created({ id: "a", depends_on: ["zz"] })),
  },
  "creating workflows / duplicate job id": {
    reason: "Reports and dependencies name a job by its id [G37].",
    differences: refused(created({ id: "a" }, { id: "a" })),
  },
  "paths and methods / unknown path": {
    reason: "A path of no protocol is answered in our own words.",
    differences: [
      { at: "content-type", reference: undefined, ours: "application/json" },
      { at: "body", reference: "", ours: nothingThere },
    ],
  },
  "paths and methods / unknown path by POST": {
    reason: "As above, and ours serves no files, so no other method would find one.",
    differences: [
      { at: "status", reference: 405, ours: 404 },
      { at: "content-type", reference: undefined, ours: "application/json" },
      { at: "allow", reference: "GET,HEAD", ours: undefined },
      { at: "body", reference: "", ours: nothingThere },
    ],
  },
  "paths and methods / preflight from a foreign page": {
    reason: "No web page may drive a local server unless its origin is allowed.",
    differences: [
      ...foreignPage,
      { at: "content-type", reference: undefined, ours: "text/plain; charset=utf-8" },
      { at: "allow", reference: "POST", ours: undefined },
      { at: "body", reference: "", ours: foreignPageText },
    ],
  },
  "paths and methods / read by a foreign page": {
    reason: "No web page may read a local server unless its origin is allowed.",
    differences: [
      ...foreignPage,
      { at: "content-type", reference: "application/json", ours: "text/plain; charset=utf-8" },
      { at: "body", reference: [], ours: foreignPageText },
    ],
  },
};
