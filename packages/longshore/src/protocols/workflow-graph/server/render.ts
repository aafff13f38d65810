// Renders our records in this wire's format.

import { isObject } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import type { TaskRow, TaskRowHead, TaskState } from "../../../engine/board/task.ts";
import { isRunOpen, type Run } from "../../../engine/run/run.ts";
import { type GraphJob, maxLostLeasesDefault } from "../dialect/source.ts";
import type { Job, JobStatus, Workflow } from "../wire/shapes.ts";
import type { NodeTexts, View } from "./view.ts";

/** `cancelling` counts as ended, except for its holder. `forgotten` waits to be started again. */
const statusOfState: { readonly [state in TaskState]: JobStatus } = {
  queued: "queued",
  offered: "running",
  held: "running",
  cancelling: "cancelled",
  done: "success",
  failed: "failure",
  cancelled: "cancelled",
  skipped: "skipped",
  forgotten: "queued",
};

/** A workflow with the states of one run; without a run, as it was defined. `records` are that run's tasks. */
export function renderWorkflow(id: string, view: View, run: Run | undefined, records: readonly TaskRowHead[]): Workflow {
  const byNode = new Map(records.filter(isRecorded).map((task) => [task.node, task]));
  const { name, trigger, jobs } = view.graph;
  return { id, name, trigger, jobs: jobs.map((job, at) => renderJob(job, byNode.get(at), run)) };
}

/** The same as a sequence of JSON texts: one for each job, one before them and one after them. */
export function* workflowTexts(
  id: string,
  view: View,
  run: Run | undefined,
  records: readonly TaskRowHead[],
): Generator<string, void, void> {
  const byNode = new Map(records.filter(isRecorded).map((task) => [task.node, task]));
  const { name, trigger, jobs } = view.graph;
  yield `${JSON.stringify({ id, name, trigger }).slice(0, -1)},"jobs":[`;
  for (const [at, job] of jobs.entries()) yield (at === 0 ? "" : ",") + JSON.stringify(renderJob(job, byNode.get(at), run));
  yield "]}";
}

function renderJob(job: GraphJob, task: TaskRowHead | undefined, run: Run | undefined): Job {
  const status = task === undefined ? unrecorded(run) : statusOfState[task.state];
  return {
    id: job.id,
    name: job.name,
    status,
    command: job.command,
    duration_secs: task === undefined ? null : durationSecs(task),
    started_at: task === undefined || status === "queued" ? null : task.startedAt,
    depends_on: job.depends_on,
    output: status === "failure" ? (task?.error ?? null) : null,
    required_labels: job.required_labels,
    max_retries: job.max_retries,
    attempt: task?.attempt ?? 0,
    metadata: job.metadata,
    ports: job.ports,
    children: job.children,
    collapsed: job.collapsed,
    ...additions(job),
  };
}

/** False for the record of an earlier life that waits to be started again. */
export function isRecorded<T extends TaskRowHead>(task: T | undefined): task is T {
  return task !== undefined && task.state !== "forgotten";
}

/** The status of a job without a record: it waits for others, or its run ended before the job could start. */
function unrecorded(run: Run | undefined): JobStatus {
  return run === undefined || isRunOpen(run.state) ? "queued" : "cancelled";
}

function durationSecs(task: TaskRowHead): number | null {
  if (task.startedAt === null || task.endedAt === null) return null;
  return task.state === "done" || task.state === "failed" ? Math.floor((task.endedAt - task.startedAt) / 1_000) : null;
}

/** Our own fields are shown only when they are not empty. */
function additions(job: GraphJob): Partial<Job> {
  const found: Partial<Job> = {};
  if (job.backoff !== "None") found.backoff = job.backoff;
  if (job.max_lost_leases !== maxLostLeasesDefault) found.max_lost_leases = job.max_lost_leases;
  if (job.timeout_secs !== null) found.timeout_secs = job.timeout_secs;
  if (job.priority !== 0) found.priority = job.priority;
  return found;
}

export interface ClaimTexts {
  part: NodeTexts;
  /** JSON texts. */
  workflowId: string;
  runId: string;
  workerId: string;
  ttlSecs: number;
}

/** The response to a claim, assembled from texts: README.md, "Claim". */
export function renderClaim(task: TaskRow, { part, workflowId, runId, workerId, ttlSecs }: ClaimTexts): string {
  const { ids, before, inputHead, after } = part;
  const command = inputHead === null ? `,"command":${handlerCommand(task)}` : "";
  const upstream = inputHead === null ? "{}" : upstreamOf(task.input, inputHead);
  // A delayed task is due after the time of queueing; without a delay both times are equal.
  const delayedUntil = task.dueAt > task.queuedAt ? task.dueAt : 0;
  const job = `${ids}${workflowId}${command}${before}${task.attempt},"upstream_outputs":${upstream},"enqueued_at_ms":${task.queuedAt},"delayed_until_ms":${delayedUntil},"run_id":${runId}${after}${deferralOf(task)}`;
  const lease = `"lease_id":"${leaseIdOf(task)}",${ids}${workflowId},"worker_id":${workerId},"ttl_secs":${ttlSecs},"granted_at_ms":${task.claimedAt ?? 0},"expires_at_ms":${task.holdUntil ?? 0},"heartbeat_secs":${heartbeatSecs(ttlSecs)}`;
  return `{"job":{${job}},"lease":{${lease}}}`;
}

function deferralOf({ deferrals, output }: TaskRow): string {
  return deferrals === 0 ? "" : `,"deferrals":${deferrals},"deferred":${output ?? "null"}`;
}

/** The task and the grant that a lease id names. */
export interface LeaseHold {
  taskId: string;
  grant: number;
}

/** `<task id>-<grant>`. A task id holds nothing that JSON or a URL would escape. */
export function leaseIdOf(task: TaskRow): string {
  return `${task.id}-${task.grant}`;
}

/** The reverse of `leaseIdOf`; undefined for a text that is not a lease id. */
export function parseLeaseId(leaseId: string): LeaseHold | undefined {
  const at = leaseId.lastIndexOf("-");
  if (at < 1 || at === leaseId.length - 1) return undefined;
  let grant = 0;
  for (let digit = at + 1; digit < leaseId.length; digit++) {
    const value = leaseId.charCodeAt(digit) - 0x30;
    if (value < 0 || value > 9) return undefined;
    grant = grant * 10 + value;
  }
  return grant <= Number.MAX_SAFE_INTEGER ? { taskId: leaseId.slice(0, at), grant } : undefined;
}

/** The input of a command is stored as `{"command":..,"upstream":{..}}`, so the outputs can be cut out unchanged. */
function upstreamOf(input: string, head: string): string {
  if (input.startsWith(head)) return input.slice(head.length, -1);
  const value: unknown = parseExact(input);
  return writeExact((isObject(value) ? value.upstream : undefined) ?? {});
}

/** A handler's step as a command: `{"handler":"greet","input":{..}}`, itself a text inside JSON. */
function handlerCommand(task: TaskRow): string {
  return JSON.stringify(`{"handler":${JSON.stringify(task.lane?.name ?? task.step)},"input":${task.input}}`);
}

/** At least three heartbeats fit into a lease, at most ten seconds apart. */
function heartbeatSecs(ttlSecs: number): number {
  return Math.max(1, Math.min(10, Math.floor(ttlSecs / 3)));
}
