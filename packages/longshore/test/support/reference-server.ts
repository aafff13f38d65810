// A small workflow-graph server that behaves as the reference does on its worker endpoints: statuses, empty bodies, the literal `null`, 409
// for every unknown lease. It keeps everything in memory and records every request. It can misbehave on request.

import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { CompleteRequest, FailRequest, LogChunk, QueuedJob } from "../../src/protocols/workflow-graph/wire/shapes.ts";
import { StubListener } from "./stub-listener.ts";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  /** The parsed body; undefined when there was none. */
  readonly body: unknown;
  /** 0 when the connection was cut before an answer. */
  status: number;
}

export interface ReferenceOptions {
  /** Adds what Longshore's own server adds: long polls, cancel state in heartbeat answers, repeatable reports. */
  readonly additions?: boolean;
}

/** A bare status, a connection cut before the request is looked at, or cut after it was applied. */
export type Misbehaviour = number | "cut" | "lose";

interface Fault {
  readonly path: RegExp;
  readonly answer: Misbehaviour;
  left: number;
}

interface Watcher {
  readonly path: RegExp;
  left: number;
  readonly resolve: (request: SeenRequest) => void;
}

export class ReferenceServer {
  readonly requests: SeenRequest[] = [];
  readonly completed: { readonly job: QueuedJob; readonly body: CompleteRequest }[] = [];
  readonly failed: { readonly job: QueuedJob; readonly body: FailRequest }[] = [];
  readonly chunks: LogChunk[] = [];
  readonly #additions: boolean;
  readonly #workers = new Map<string, string[]>();
  readonly #pending: QueuedJob[] = [];
  readonly #leases = new Map<string, QueuedJob>();
  readonly #ended = new Set<string>();
  readonly #cancelled = new Set<string>();
  readonly #faults = new Set<Fault>();
  readonly #watchers = new Set<Watcher>();
  readonly #polls = new Set<() => void>();
  readonly #listener = new StubListener((request, response) => void this.#answer(request, response));

  constructor(options: ReferenceOptions = {}) {
    this.#additions = options.additions ?? false;
  }

  static async start(options: ReferenceOptions = {}): Promise<ReferenceServer> {
    const server = new ReferenceServer(options);
    await server.listen();
    return server;
  }

  get url(): string {
    return this.#listener.url;
  }

  /** Lease ids that are held now. */
  get leases(): string[] {
    return [...this.#leases.keys()];
  }

  get workers(): ReadonlyMap<string, string[]> {
    return this.#workers;
  }

  /** Listens again on the same port after `close`. */
  listen(): Promise<void> {
    return this.#listener.listen();
  }

  close(): Promise<void> {
    for (const wake of [...this.#polls]) wake();
    return this.#listener.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  enqueue(job: Partial<QueuedJob> & { command: string }): void {
    this.#pending.push({
      job_id: `job-${this.#pending.length + this.#leases.size + this.#ended.size}`,
      workflow_id: "wf",
      required_labels: [],
      retry_policy: { max_retries: 0, backoff: "None" },
      attempt: 0,
      upstream_outputs: {},
      enqueued_at_ms: 1_700_000_000_000,
      delayed_until_ms: 0,
      ...job,
    });
    for (const wake of [...this.#polls]) wake();
  }

  cancel(workflowId: string, jobId: string): void {
    this.#cancelled.add(`${workflowId}/${jobId}`);
  }

  /** As the reaper of the reference: every lease held now is gone. */
  expireLeases(): void {
    this.#leases.clear();
  }

  /** As after a restart without memory of its workers. */
  forgetWorkers(): void {
    this.#workers.clear();
  }

  /** The next `times` requests whose path matches are treated so. */
  misbehave(path: RegExp, answer: Misbehaviour, times = Number.POSITIVE_INFINITY): () => void {
    const fault = { path, answer, left: times };
    this.#faults.add(fault);
    return () => this.#faults.delete(fault);
  }

  /** Resolves with the `count`th request from now on whose path matches, when it has been answered. */
  next(path: RegExp, count = 1): Promise<SeenRequest> {
    return new Promise((resolve) => this.#watchers.add({ path, left: count, resolve }));
  }

  /** All requests so far whose path matches. */
  seen(path: RegExp): SeenRequest[] {
    return this.requests.filter((request) => path.test(request.path));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const text = Buffer.concat(parts).toString();
    const path = request.url as string;
    const seen: SeenRequest = {
      method: request.method as string,
      path,
      headers: request.headers,
      text,
      body: text === "" ? undefined : JSON.parse(text),
      status: 0,
    };
    const fault = [...this.#faults].find((each) => each.path.test(path) && each.left-- > 0);
    if (typeof fault?.answer === "number") finish(response, fault.answer);
    else if (fault?.answer !== "cut") await this.#route(seen, response, fault?.answer === "lose");
    if (typeof fault?.answer === "string") response.destroy();
    seen.status = typeof fault?.answer === "string" ? 0 : response.statusCode;
    this.requests.push(seen);
    for (const watcher of [...this.#watchers]) {
      if (!watcher.path.test(path) || --watcher.left > 0) continue;
      this.#watchers.delete(watcher);
      watcher.resolve(seen);
    }
  }

  async #route(seen: SeenRequest, response: ServerResponse, lose: boolean): Promise<void> {
    if (lose) response.end = () => response;
    if (this.#additions) response.setHeader("longshore-wait", "30");
    const [, , kind = "", first = "", second = "", third = ""] = seen.path.split("/").map(decodeURIComponent);
    if (kind === "workers" && first === "register") return this.#register(seen, response);
    if (kind === "workers") return finish(response, this.#workers.has(first) ? 200 : 404);
    if (kind === "jobs" && first === "claim") return this.#claim(seen, response);
    if (third === "cancelled") return finish(response, 200, String(this.#cancelled.has(`${first}/${second}`)));
    if (second === "heartbeat") return this.#heartbeat(first, seen, response);
    if (second === "logs") return this.#logs(seen, response);
    return this.#report(first, second, seen, response);
  }

  #register(seen: SeenRequest, response: ServerResponse): void {
    const body = seen.body as { worker_id: string; labels: string[] };
    this.#workers.set(body.worker_id, body.labels);
    finish(response, 200);
  }

  async #claim(seen: SeenRequest, response: ServerResponse): Promise<void> {
    const body = seen.body as { worker_id: string; labels: string[]; lease_ttl_secs: number; wait_secs?: number };
    const matches = (job: QueuedJob) => job.required_labels.every((label) => body.labels.includes(label));
    if (this.#additions && (body.wait_secs ?? 0) > 0 && !this.#pending.some(matches)) await this.#wait(response);
    const at = response.destroyed ? -1 : this.#pending.findIndex(matches);
    if (at < 0) return finish(response, 200, "null");
    const job = this.#pending.splice(at, 1)[0] as QueuedJob;
    const lease_id = randomUUID();
    this.#leases.set(lease_id, job);
    const { job_id, workflow_id } = job;
    const lease = {
      lease_id,
      job_id,
      workflow_id,
      worker_id: body.worker_id,
      ttl_secs: body.lease_ttl_secs,
      granted_at_ms: 1_700_000_000_000,
    };
    finish(response, 200, JSON.stringify({ job, lease }));
  }

  #wait(response: ServerResponse): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#polls.delete(wake);
        resolve();
      };
      this.#polls.add(wake);
      response.once("close", wake);
    });
  }

  #heartbeat(leaseId: string, seen: SeenRequest, response: ServerResponse): void {
    const job = this.#leases.get(leaseId);
    if (job === undefined) return finish(response, 409);
    if (!this.#additions || seen.headers.accept !== "application/json") return finish(response, 200);
    const cancelled = this.#cancelled.has(`${job.workflow_id}/${job.job_id}`);
    finish(response, 200, JSON.stringify({ cancelled, expires_at_ms: 1_700_000_030_000 }));
  }

  #logs(seen: SeenRequest, response: ServerResponse): void {
    this.chunks.push(...(seen.body as { chunks: LogChunk[] }).chunks);
    finish(response, 200);
  }

  #report(leaseId: string, verb: string, seen: SeenRequest, response: ServerResponse): void {
    const job = this.#leases.get(leaseId);
    if (job === undefined) {
      const repeated = this.#additions && this.#ended.has(`${seen.headers["idempotency-key"]}`);
      return finish(response, repeated ? 200 : 409);
    }
    this.#leases.delete(leaseId);
    this.#ended.add(`${seen.headers["idempotency-key"]}`);
    if (verb === "complete") this.completed.push({ job, body: seen.body as CompleteRequest });
    else this.failed.push({ job, body: seen.body as FailRequest });
    finish(response, 200);
  }
}

function finish(response: ServerResponse, status: number, json?: string): void {
  response.statusCode = status;
  if (json !== undefined) response.setHeader("content-type", "application/json");
  response.end(json);
}
