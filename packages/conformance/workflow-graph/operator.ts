// An operator of a workflow-graph server: creates, runs, cancels and reads workflows over its HTTP API.
import { type Answer, exchange } from "../src/exchange.ts";
import { until } from "../src/until.ts";

export type Status = "queued" | "running" | "success" | "failure" | "skipped" | "cancelled";

export interface Job {
  id: string;
  name: string;
  status: Status;
  command: string;
  depends_on: string[];
  required_labels?: string[];
  max_retries?: number;
  attempt?: number;
  output?: string | null;
  started_at?: number | null;
}

export interface Workflow {
  id: string;
  jobs: Job[];
}

export interface Chunk {
  workflow_id: string;
  job_id: string;
  sequence: number;
  data: string;
  timestamp_ms: number;
  stream: "stdout" | "stderr";
}

export interface WorkerInfo {
  worker_id: string;
  labels: string[];
  status: "idle" | "busy" | "offline";
}

/** A job for the API. Adds the fields that the protocol requires. */
export function job(id: string, command: string, more: Partial<Job> = {}): Job {
  return { id, name: id, status: "queued", command, depends_on: [], ...more };
}

export interface Operator {
  /** Creates and starts a workflow of these jobs. Returns its id. */
  run(...jobs: Job[]): Promise<string>;
  /** Creates and starts the server's built-in sample of eight jobs. Returns its id. */
  runSample(): Promise<string>;
  rerun(id: string): Promise<void>;
  cancel(id: string): Promise<void>;
  /** The state of every job, by job id. */
  states(id: string): Promise<Record<string, Status>>;
  job(id: string, jobId: string): Promise<Job>;
  /** Waits until no job is queued or running, and returns the states. */
  finished(id: string): Promise<Record<string, Status>>;
  /** Waits until one job has the state. */
  reaches(id: string, jobId: string, status: Status): Promise<Job>;
  logs(id: string, jobId: string): Promise<Chunk[]>;
  /** Waits until the log text of a job contains this text. */
  logged(id: string, jobId: string, words: string): Promise<string>;
  workers(): Promise<WorkerInfo[]>;
}

export function operatorOf(url: string): Operator {
  const get = async <T>(path: string): Promise<T> =>
    JSON.parse(expectStatus(await exchange(url, { method: "GET", path }), 200, path).body) as T;
  const post = async (path: string, status: number, body?: unknown): Promise<string> => {
    const json = body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    return expectStatus(await exchange(url, { method: "POST", path, ...json }), status, path).body;
  };
  const workflow = (id: string): Promise<Workflow> => get<Workflow>(`/api/workflows/${id}/status`);
  const states = async (id: string): Promise<Record<string, Status>> =>
    Object.fromEntries((await workflow(id)).jobs.map(({ id, status }) => [id, status]));
  const findJob = async (id: string, jobId: string): Promise<Job> => {
    const found = (await workflow(id)).jobs.find((candidate) => candidate.id === jobId);
    if (!found) throw new Error(`workflow ${id} has no job ${jobId}`);
    return found;
  };
  const logs = (id: string, jobId: string): Promise<Chunk[]> => get<Chunk[]>(`/api/workflows/${id}/jobs/${jobId}/logs`);
  const create = async (path: string, body?: unknown): Promise<string> => {
    const { id } = JSON.parse(await post(path, 201, body)) as Workflow;
    await post(`/api/workflows/${id}/run`, 202);
    return id;
  };

  return {
    run: (...jobs) => create("/api/workflows", { name: "conformance", trigger: "manual", jobs }),
    runSample: () => create("/api/workflows/sample"),
    rerun: async (id) => void (await post(`/api/workflows/${id}/run`, 202)),
    cancel: async (id) => void (await post(`/api/workflows/${id}/cancel`, 202)),
    states,
    job: findJob,
    logs,
    workers: () => get<WorkerInfo[]>("/api/workers"),
    async finished(id) {
      let seen: Record<string, Status> = {};
      const over = async (): Promise<Record<string, Status> | undefined> => {
        seen = await states(id);
        return Object.values(seen).some((status) => status === "queued" || status === "running") ? undefined : seen;
      };
      return until(`workflow ${id} to finish`, over, () => seen);
    },
    async reaches(id, jobId, status) {
      let seen: Job | undefined;
      const there = async (): Promise<Job | undefined> => {
        seen = await findJob(id, jobId);
        return seen.status === status ? seen : undefined;
      };
      return until(`job ${jobId} to be ${status}`, there, () => seen);
    },
    async logged(id, jobId, words) {
      let seen = "";
      const there = async (): Promise<string | undefined> => {
        seen = (await logs(id, jobId)).map(({ data }) => data).join("");
        return seen.includes(words) ? seen : undefined;
      };
      return until(`the log of ${jobId} to contain ${words}`, there, () => seen);
    },
  };
}

function expectStatus(answer: Answer, status: number, path: string): Answer {
  if (answer.status !== status) throw new Error(`${path} answered ${answer.status}, expected ${status}: ${answer.body}`);
  return answer;
}
