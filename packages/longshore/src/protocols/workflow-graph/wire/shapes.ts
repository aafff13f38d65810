// The shapes on the wire of workflow-graph, with its own spelling. Both halves import them. Nothing here does I/O. README.md of this
// protocol is the contract with literal examples. Fields marked "ours" are additions that the reference neither sends nor reads; everything
// else must always be present, because the Rust worker parses strictly.

import type { Json } from "../../../core/json/json.ts";
import type { ForeseenTurn } from "../../../core/turn.ts";

export type LogStream = "stdout" | "stderr";
export type JobStatus = "queued" | "running" | "success" | "failure" | "skipped" | "cancelled";
export type Outputs = { [key: string]: string };

/** Externally tagged and capitalised, unlike every other enum of this protocol. */
export type WireBackoff = "None" | { Fixed: { delay_secs: number } } | { Exponential: { base_secs: number; max_secs: number } };

export interface RegisterRequest {
  worker_id: string;
  labels: string[];
}

export interface ClaimRequest {
  worker_id: string;
  labels: string[];
  /** Whole seconds; 30 when absent. */
  lease_ttl_secs: number;
  /** Ours: how long an empty claim may wait for work, 0 to 30. */
  wait_secs?: number;
}

/** The kind of a job's command: a text for `sh -c`, or a call of a handler. */
export type JobKind = "shell" | "handler";

export interface QueuedJob {
  job_id: string;
  workflow_id: string;
  command: string;
  required_labels: string[];
  retry_policy: { max_retries: number; backoff: WireBackoff };
  /** 0 on the first execution. */
  attempt: number;
  upstream_outputs: { [jobId: string]: Outputs };
  enqueued_at_ms: number;
  /** 0 = no delay. */
  delayed_until_ms: number;
  /** Ours. */
  run_id?: string;
  timeout_secs?: number;
  kind?: JobKind;
  /** Only after a deferral: how often this attempt was deferred, and the output of the last deferral. */
  deferrals?: number;
  deferred?: Json;
}

export interface Lease {
  lease_id: string;
  job_id: string;
  workflow_id: string;
  worker_id: string;
  ttl_secs: number;
  granted_at_ms: number;
  /** Ours. */
  expires_at_ms?: number;
  heartbeat_secs?: number;
}

/** The answer to a claim; the literal `null` when there is nothing to do. */
export interface ClaimResponse {
  job: QueuedJob;
  lease: Lease;
}

/** Ours: the body of a heartbeat's 200, for clients that send `Accept: application/json`. Others get an empty body. */
export interface HeartbeatResponse {
  cancelled: boolean;
  expires_at_ms: number;
}

export interface LogChunk {
  workflow_id: string;
  job_id: string;
  sequence: number;
  data: string;
  timestamp_ms: number;
  stream: LogStream;
  /** Ours, on chunks that are read: which run and which attempt wrote it. */
  run_id?: string;
  attempt?: number;
}

export interface CompleteRequest {
  /** The handler's result as texts, which is all that the reference knows. Absent with `output`. */
  outputs?: Outputs;
  /** Ours: the handler's unchanged result. */
  output?: Json;
  /** Ours: the claim of a worker that can take another job. The answer is that of a claim, or an empty body without a job. */
  next?: ClaimRequest;
  /** Ours: the turn of a durable function that this result brings, already taken. Only together with `next`. */
  turn?: ForeseenTurn;
}

export interface FailRequest {
  error: string;
  retryable: boolean;
}

/** Ours: the job comes again later, in the same attempt. */
export interface DeferRequest {
  delay_ms: number;
  /** The output of the deferral, which the next call gets. */
  output?: Json;
}

export interface WorkerInfo {
  worker_id: string;
  labels: string[];
  registered_at_ms: number;
  last_heartbeat_ms: number;
  current_job: string | null;
  status: "idle" | "busy" | "offline";
  /** Ours: every job that the worker holds. */
  current_jobs?: string[];
}

export interface Port {
  id: string;
  label: string;
  direction: "input" | "output";
  port_type: string;
  color: string | null;
}

export interface Job {
  id: string;
  name: string;
  status: JobStatus;
  command: string;
  /** Whole seconds, rounded down. */
  duration_secs: number | null;
  /** Epoch milliseconds; the reference writes a fraction (`.0`), its readers take any number. */
  started_at: number | null;
  depends_on: string[];
  /** The error text of a final failure, else null. */
  output: string | null;
  required_labels: string[];
  max_retries: number;
  attempt: number;
  metadata: { [key: string]: Json };
  ports: Port[];
  children: Job[] | null;
  collapsed: boolean;
  /** Ours: accepted when a workflow is created, and shown when they were given. */
  backoff?: WireBackoff;
  max_lost_leases?: number;
  timeout_secs?: number;
  priority?: number;
}

export interface Workflow {
  id: string;
  name: string;
  trigger: string;
  jobs: Job[];
}

/** A worker advertises its handlers as labels, so that other servers match them by their usual rule for labels. */
export const handlerLabelPrefix = "handler:";

export const leaseTtlSecsDefault = 30;
/** The limits of a lease. One of zero would end before its worker reads it; one of more than a day means a forgotten job. */
export const leaseTtlSecsMin = 1;
export const leaseTtlSecsMax = 86_400;
/** Maximum number of reports in one request. */
export const reportsMax = 50;
/** Longest wait of an empty claim, below the idle timeouts of common proxies. */
export const waitSecsMax = 30;
/** Error texts are cut to this length, keeping head and tail; small workers in other languages cut at the same number. */
export const errorCharsMax = 4_096;
