// The server's API as these tests use it. All paths and formats that they use are in this file.
import type { Claim, ReportVerb } from "./history.ts";
import type { Answer, Connection } from "./http.ts";
import type { FinalState, FinalTask } from "./story.ts";

/** One job of a workflow-graph workflow, as `POST /api/workflows` takes it. */
export interface Job {
  id: string;
  name: string;
  status: "queued";
  command: string;
  depends_on: string[];
  max_retries: number;
  max_lost_leases: number;
}

interface HeartbeatAnswer {
  status: number;
  cancelled?: boolean | undefined;
  expiresAt?: number | undefined;
}

/** An unexpected response of the server, with its content. */
export class UnexpectedAnswer extends Error {
  override name = "UnexpectedAnswer";
  readonly code = "UNEXPECTED_ANSWER";
  readonly status: number;

  constructor(asked: string, answer: Answer) {
    super(`${asked} answered ${answer.status}: ${answer.text.slice(0, 300)}`);
    this.status = answer.status;
  }
}

/** The states in which a run or a task stays permanently. */
const ENDED_RUN_STATES = new Set(["succeeded", "failed", "cancelled", "timed-out"]);
const ENDED_TASK_STATES = new Set(["done", "failed", "cancelled", "skipped"]);
const COMPLETED_TASK_STATE = "done";

export async function createWorkflow(connection: Connection, name: string, jobs: Job[]): Promise<string> {
  const answer = await ask(connection, "POST", "/api/workflows", { name, trigger: "manual", jobs }, [201]);
  return (JSON.parse(answer.text) as { id: string }).id;
}

/** A second start with the same key, after a missing response, starts nothing more. */
export async function startRun(connection: Connection, workflow: string, key?: string): Promise<string> {
  const answer = await ask(connection, "POST", "/api/longshore/v1/runs", { workflow, input: {}, key }, [201, 200]);
  return (JSON.parse(answer.text) as { id: string }).id;
}

/** The ids of all runs that the server knows. */
export async function listRuns(connection: Connection): Promise<string[]> {
  const ids: string[] = [];
  for (let before = ""; ; ) {
    const answer = await ask(connection, "GET", `/api/longshore/v1/runs?limit=1000${before}`, undefined, [200]);
    const page = JSON.parse(answer.text) as { items: { id: string }[]; next?: string | null };
    ids.push(...page.items.map(({ id }) => id));
    if (!page.next) return ids;
    before = `&before=${encodeURIComponent(page.next)}`;
  }
}

export async function cancelRun(connection: Connection, runId: string): Promise<{ status: number; state?: string | undefined }> {
  const answer = await ask(connection, "POST", `/api/longshore/v1/runs/${runId}/cancel`, undefined, [202]);
  const said = parseOrNull(answer.text) as { state?: string } | null;
  return { status: answer.status, state: said?.state };
}

export async function readRun(connection: Connection, runId: string): Promise<FinalState["runs"][number] | undefined> {
  const answer = await connection.request("GET", `/api/longshore/v1/runs/${runId}`);
  if (answer.status === 404) return undefined;
  if (answer.status !== 200) throw new UnexpectedAnswer(`GET run ${runId}`, answer);
  const { id, state } = JSON.parse(answer.text) as { id: string; state: string };
  return { id, state, ended: ENDED_RUN_STATES.has(state) };
}

export async function readTasks(connection: Connection, runId: string): Promise<FinalTask[]> {
  const tasks: FinalTask[] = [];
  let path: string | undefined = `/api/longshore/v1/runs/${runId}/tasks`;
  while (path) {
    const answer: Answer = await ask(connection, "GET", path, undefined, [200]);
    const page = JSON.parse(answer.text) as { items: RawTask[]; next?: string | null };
    tasks.push(...page.items.map((task) => finalTask(task, runId)));
    path = page.next ? `/api/longshore/v1/runs/${runId}/tasks?after=${encodeURIComponent(page.next)}` : undefined;
  }
  return tasks;
}

interface RawTask {
  id: string;
  step: string;
  state: string;
  failures?: number;
  lost?: number;
  output?: { token?: string } | null;
}

function finalTask({ id, step, state, failures, lost, output }: RawTask, runId: string): FinalTask {
  const token = output === undefined ? undefined : (output?.token ?? null);
  return { id, runId, step, state, failures, lost, token, ended: ENDED_TASK_STATES.has(state), completed: state === COMPLETED_TASK_STATE };
}

/** Null when there is no task. The client disconnects when `signal` aborts. */
export async function claimJob(
  connection: Connection,
  { workerId, ttlSecs, waitSecs, signal }: { workerId: string; ttlSecs: number; waitSecs: number; signal?: AbortSignal | undefined },
): Promise<Claim | null> {
  const body = { worker_id: workerId, labels: [], lease_ttl_secs: ttlSecs, wait_secs: waitSecs };
  const answer = await ask(connection, "POST", "/api/jobs/claim", body, [200], signal);
  const said = JSON.parse(answer.text) as RawClaim | null;
  if (!said) return null;
  const { job, lease } = said;
  const ttlMs = lease.ttl_secs * 1000;
  return {
    leaseId: lease.lease_id,
    runId: job.run_id ?? job.workflow_id,
    step: job.job_id,
    attempt: job.attempt,
    ttlMs,
    grantedAt: lease.granted_at_ms,
    expiresAt: lease.expires_at_ms ?? lease.granted_at_ms + ttlMs,
    upstream: Object.fromEntries(Object.entries(job.upstream_outputs).map(([step, outputs]) => [step, outputs.token])),
  };
}

interface RawClaim {
  job: { job_id: string; workflow_id: string; run_id?: string; attempt: number; upstream_outputs: Record<string, { token?: string }> };
  lease: { lease_id: string; ttl_secs: number; granted_at_ms: number; expires_at_ms?: number };
}

export async function heartbeat(connection: Connection, leaseId: string): Promise<HeartbeatAnswer> {
  const answer = await connection.request("POST", `/api/jobs/${leaseId}/heartbeat`, undefined, { headers: { accept: "application/json" } });
  const said = parseOrNull(answer.text) as { cancelled?: boolean; expires_at_ms?: number } | null;
  return { status: answer.status, cancelled: said?.cancelled, expiresAt: said?.expires_at_ms };
}

/** A repeated report has the same key, so that it gets the same response as the lost one. */
export async function report(connection: Connection, leaseId: string, verb: ReportVerb, token: string): Promise<number> {
  const body = verb === "complete" ? { outputs: { token } } : { error: `planned failure of ${leaseId}`, retryable: true };
  const headers = { "idempotency-key": `${leaseId}-${verb}` };
  const answer = await connection.request("POST", `/api/jobs/${leaseId}/${verb}`, body, { headers });
  if (answer.status !== 200 && answer.status !== 409) throw new UnexpectedAnswer(verb, answer);
  return answer.status;
}

/** Returns the status: 200 or 409. */
export async function pushLog(connection: Connection, { leaseId, runId, step }: Claim, sequence: number, line: string): Promise<number> {
  const chunk = { workflow_id: runId, job_id: step, sequence, data: line, timestamp_ms: sequence, stream: "stdout" };
  const answer = await connection.request("POST", `/api/jobs/${leaseId}/logs`, { chunks: [chunk] });
  if (answer.status !== 200 && answer.status !== 409) throw new UnexpectedAnswer("logs", answer);
  return answer.status;
}

/** What is stored of the logs of a run, in order of arrival. */
export async function readLog(connection: Connection, runId: string): Promise<string[]> {
  const lines: string[] = [];
  for (let after = ""; ; ) {
    const answer = await ask(connection, "GET", `/api/longshore/v1/runs/${runId}/logs?limit=1000${after}`, undefined, [200]);
    const page = JSON.parse(answer.text) as { items: { data: string }[]; next?: string | null };
    lines.push(...page.items.map(({ data }) => data));
    if (!page.next) return lines;
    after = `&after=${page.next}`;
  }
}

async function ask(
  connection: Connection,
  method: string,
  path: string,
  body: unknown,
  expected: readonly number[],
  signal?: AbortSignal,
): Promise<Answer> {
  const answer = await connection.request(method, path, body, { signal });
  if (!expected.includes(answer.status)) throw new UnexpectedAnswer(`${method} ${path}`, answer);
  return answer;
}

function parseOrNull(text: string): unknown {
  return text === "" ? null : JSON.parse(text);
}
