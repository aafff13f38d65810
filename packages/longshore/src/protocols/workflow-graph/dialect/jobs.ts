// Definitions that arrive over HTTP as `{name, trigger, jobs}` with jobs in the runtime form. The wire's parser has checked shapes; this
// file checks the graph and copies the fields of a definition.

import type { Job } from "../wire/shapes.ts";
import { checkCommands, checkGraph, type Refuse, refuse } from "./check.ts";
import { encodeSource, type GraphJob, type GraphSource, maxLostLeasesDefault } from "./source.ts";

/**
 * Throws the error that `refusal` creates for the first fault. Default: LONGSHORE_BAD_DEFINITION with the field, such as
 * `jobs[2].depends_on[0]`.
 */
export function fromJobs(
  workflow: { name: string; trigger: string; jobs: readonly Job[] },
  refusal: Refuse = refuse,
): { graph: GraphSource; source: string } {
  const graph: GraphSource = { name: workflow.name, trigger: workflow.trigger, jobs: workflow.jobs.map(graphJob) };
  checkGraph(graph, { job: (at) => ["jobs", at, "id"], dependency: (at, place) => ["jobs", at, "depends_on", place] }, refusal);
  checkCommands(graph, { job: (at) => ["jobs", at, "command"] }, refusal);
  return { graph, source: encodeSource(graph) };
}

/** Drops states, times and outputs that a client sends along: they belong to another run. */
function graphJob(job: Job): GraphJob {
  return {
    id: job.id,
    name: job.name,
    command: job.command,
    depends_on: job.depends_on,
    required_labels: job.required_labels,
    max_retries: job.max_retries,
    max_lost_leases: job.max_lost_leases ?? maxLostLeasesDefault,
    backoff: job.backoff ?? "None",
    timeout_secs: job.timeout_secs ?? null,
    priority: job.priority ?? 0,
    skip: false,
    metadata: job.metadata,
    ports: job.ports,
    children: job.children,
    collapsed: job.collapsed,
  };
}
