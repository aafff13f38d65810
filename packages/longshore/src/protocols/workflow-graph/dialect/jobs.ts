// Definitions that arrive over HTTP as `{name, trigger, jobs}` with jobs in the runtime form. The wire's parser has checked shapes;
// here the graph is checked and what a definition keeps is taken over.

import type { Job } from "../wire/shapes.ts";
import { checkCommands, checkGraph, type Refuse, refuse } from "./check.ts";
import { encodeSource, type GraphJob, type GraphSource, maxLostLeasesDefault } from "./source.ts";

/**
 * Throws what `refusal` makes of the first fault: LONGSHORE_BAD_DEFINITION naming the field, such as `jobs[2].depends_on[0]`, by default.
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

/** States, times and outputs that a client sends along are those of some other run: a definition has none. */
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
