// A whole server with a data file, a free loopback port and a test clock. Operators and workers send it literal workflow-graph requests.

import { Agent, type IncomingHttpHeaders, request } from "node:http";
import { onTestFinished } from "vitest";
import type { ClaimResponse, Job, JobStatus, LogChunk, WorkerInfo, Workflow } from "../../src/protocols/workflow-graph/wire/shapes.ts";
import { type ServeOptions, type Server, serve } from "../../src/server/index.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { temporaryFolder } from "./parts.ts";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface RequestOptions {
  headers?: Record<string, string>;
  body?: string;
}

export interface ClaimOptions {
  worker?: string;
  labels?: string[];
  ttl?: number;
  wait?: number;
}

export interface GraphServer {
  readonly clock: TestClock;
  readonly server: Server;
  readonly url: string;
  readonly data: string;
  send(method: string, path: string, options?: RequestOptions): Promise<Answer>;
  get(path: string): Promise<Answer>;
  /** With a JSON body when there is one. Otherwise without a body and a content type. */
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Creates a workflow and returns its id. */
  create(...jobs: Partial<Job>[]): Promise<string>;
  /** Creates and starts one. */
  start(...jobs: Partial<Job>[]): Promise<string>;
  workflow(id: string): Promise<Workflow>;
  /** The status word of each job. */
  states(id: string): Promise<{ [jobId: string]: JobStatus }>;
  job(id: string, jobId: string): Promise<Job>;
  claim(options?: ClaimOptions): Promise<ClaimResponse | null>;
  /** Claims and fails the test when there is nothing. */
  take(options?: ClaimOptions): Promise<ClaimResponse>;
  heartbeat(leaseId: string): Promise<number>;
  complete(leaseId: string, outputs?: Record<string, string>): Promise<number>;
  fail(leaseId: string, retryable?: boolean, error?: string): Promise<number>;
  cancelled(workflowId: string, jobId: string): Promise<boolean>;
  push(leaseId: string, ...chunks: Partial<LogChunk>[]): Promise<number>;
  logs(id: string, jobId: string): Promise<LogChunk[]>;
  workers(): Promise<WorkerInfo[]>;
  close(): Promise<void>;
}

/** A job as the API takes it. */
export function job(id: string, more: Partial<Job> = {}): Partial<Job> {
  return { id, name: id, status: "queued", command: `echo ${id}`, depends_on: [], ...more };
}

/** Closed at the end of the test. With `before`, on the same file and clock. */
export async function startGraphServer(options: ServeOptions = {}, before?: Pick<GraphServer, "clock" | "data">): Promise<GraphServer> {
  const clock = before?.clock ?? new TestClock();
  const data = before?.data ?? temporaryFolder();
  // Some tests are about refusals, which would only fill the output of the test run.
  const server = await serve({ data, port: 0, clock, logger: { write: () => {} }, ...options });
  const url = server.url as string;
  const agent = new Agent({ keepAlive: true });
  let closed: Promise<void> | undefined;
  const close = () => {
    agent.destroy();
    closed ??= server.close();
    return closed;
  };
  onTestFinished(close);
  return { clock, server, url, data, close, ...conversation(url, agent) };
}

/** The requests alone, for a server that runs elsewhere. */
export function conversation(url: string, agent?: Agent): Omit<GraphServer, "clock" | "server" | "url" | "data" | "close"> {
  const send: GraphServer["send"] = (method, path, options = {}) => exchange(`${url}${path}`, method, options, agent);
  const get: GraphServer["get"] = (path) => send("GET", path);
  const post: GraphServer["post"] = (path, body, headers = {}) => {
    if (body === undefined) return send("POST", path, { headers });
    return send("POST", path, { headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) });
  };
  const read = async <T>(path: string) => JSON.parse(expectStatus(await get(path), 200, path).text) as T;
  const workflow = (id: string) => read<Workflow>(`/api/workflows/${id}/status`);
  const create = async (...jobs: Partial<Job>[]) => {
    const answer = await post("/api/workflows", { name: "n", trigger: "t", jobs });
    return (JSON.parse(expectStatus(answer, 201, "create").text) as Workflow).id;
  };
  const claim: GraphServer["claim"] = async ({ worker = "w1", labels = [], ttl = 30, wait } = {}) => {
    const answer = await post("/api/jobs/claim", { worker_id: worker, labels, lease_ttl_secs: ttl, wait_secs: wait });
    return JSON.parse(expectStatus(answer, 200, "claim").text) as ClaimResponse | null;
  };
  const chunk = (taken: Partial<LogChunk>) => ({ sequence: 0, data: "", timestamp_ms: 1, stream: "stdout", ...taken });
  return {
    send,
    get,
    post,
    create,
    workflow,
    claim,
    async start(...jobs) {
      const id = await create(...jobs);
      expectStatus(await post(`/api/workflows/${id}/run`), 202, "run");
      return id;
    },
    async states(id) {
      return Object.fromEntries((await workflow(id)).jobs.map((one) => [one.id, one.status]));
    },
    async job(id, jobId) {
      const found = (await workflow(id)).jobs.find((one) => one.id === jobId);
      if (found === undefined) throw new Error(`Workflow ${id} has no job ${jobId}.`);
      return found;
    },
    async take(options) {
      const claimed = await claim(options);
      if (claimed === null) throw new Error("There was nothing to claim.");
      return claimed;
    },
    heartbeat: async (lease) => (await post(`/api/jobs/${lease}/heartbeat`)).status,
    complete: async (lease, outputs = {}) => (await post(`/api/jobs/${lease}/complete`, { outputs })).status,
    fail: async (lease, retryable = false, error = "no luck") => (await post(`/api/jobs/${lease}/fail`, { error, retryable })).status,
    cancelled: (id, jobId) => read<boolean>(`/api/jobs/${id}/${jobId}/cancelled`),
    push: async (lease, ...chunks) => (await post(`/api/jobs/${lease}/logs`, { chunks: chunks.map(chunk) })).status,
    logs: (id, jobId) => read<LogChunk[]>(`/api/workflows/${id}/jobs/${jobId}/logs`),
    workers: () => read<WorkerInfo[]>("/api/workers"),
  };
}

/** Checks again until `condition` holds. Each check is a request, so the server has turns in between. */
export async function eventually(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve));
}

function exchange(url: string, method: string, { headers = {}, body }: RequestOptions, agent: Agent | undefined): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length: Record<string, string> = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    const sent = request(url, { method, agent, headers: { ...length, ...headers } }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString("utf8") }),
      );
    });
    sent.on("error", reject);
    // A server may answer and disconnect while the body is still being written. Then Node removes its own listener from the socket before
    // the socket reports this. An error without a listener ends the process.
    sent.on("socket", (socket) => {
      if (socket.listenerCount("error", ignore) === 0) socket.on("error", ignore);
    });
    sent.end(body);
  });
}

function ignore(): void {}

function expectStatus(answer: Answer, status: number, what: string): Answer {
  if (answer.status !== status) throw new Error(`${what} was answered ${answer.status}, not ${status}: ${answer.text}`);
  return answer;
}
