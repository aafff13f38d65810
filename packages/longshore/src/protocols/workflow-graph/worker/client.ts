// The worker's HTTP calls: one method for each endpoint of the worker protocol. Responses are parsed only here.

import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type Json, parseOrUndefined } from "../../../core/json/json.ts";
import { withoutEndSlashes } from "../../../core/text.ts";
import { type SpanIds, spanIdsOfHeader } from "../../../core/trace.ts";
import type { Verdict } from "../../../core/verdict.ts";
import { type HttpCall, HttpClient } from "../../../net/http/client.ts";
import { quoteCharsMax, quoted, type Reply, shortAnswerBytesMax } from "../../../net/http/send.ts";
import { idempotencyHeader, reportsHeader, traceHeader, turnHeader, verdictOfStatus, waitHeader } from "../wire/codes.ts";
import type {
  ClaimRequest,
  ClaimResponse,
  CompleteRequest,
  DeferRequest,
  FailRequest,
  HeartbeatResponse,
  LogChunk,
  RegisterRequest,
} from "../wire/shapes.ts";
import { ReportBatch } from "./report-batch.ts";

export interface ClientOptions {
  readonly url: URL;
  readonly token: string | undefined;
  /** Maximum number of concurrent requests. */
  readonly connections: number;
}

export interface ClaimAnswer {
  readonly claim: ClaimResponse | undefined;
  /** The span of this attempt at a server that writes spans. */
  readonly span: SpanIds | undefined;
  /** The longest long poll the server offers; 0 when it offers none. */
  readonly waitSecs: number;
}

export interface Completed {
  readonly verdict: Verdict;
  /** The job that the server handed out with its answer. */
  readonly next: ClaimResponse | undefined;
  readonly span: SpanIds | undefined;
  /** The turn that came with the report was accepted. */
  readonly tookTurn: boolean;
}

interface Request {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: { readonly [name: string]: string };
  readonly waitMs?: number;
  /** True when the response contains a job; other responses are short. */
  readonly carriesJob?: boolean;
  readonly signal?: AbortSignal | undefined;
}

export class Client {
  readonly #http: HttpClient;
  readonly #batch: ReportBatch;
  /** How many reports the server takes in one request. */
  #reportsMax = 0;

  static async open({ url, token, connections }: ClientOptions): Promise<Client> {
    // The address may include the `/api` that every path starts with.
    const base = `${withoutEndSlashes(url.pathname).replace(/\/api$/, "")}/api`;
    return new Client(await HttpClient.open({ origin: url.origin, base, token, connections }));
  }

  private constructor(http: HttpClient) {
    this.#http = http;
    this.#batch = new ReportBatch({
      most: () => this.#reportsMax,
      send: (text) => this.#post("/jobs/reports", text),
      sendAlone: ({ leaseId, verb, body, key, next }, signal) => {
        const text = next === undefined ? body : `${body.slice(0, -1)},"next":${JSON.stringify(next)}}`;
        const headers = key === undefined ? undefined : { [idempotencyHeader]: key };
        // News for a turn and the next job may be large.
        const bytesMax = verb === "commands" || next !== undefined ? undefined : shortAnswerBytesMax;
        return this.#post(`/jobs/${encodeURIComponent(leaseId)}/${verb}`, text, { headers, signal, bytesMax });
      },
      refused: () => {
        this.#reportsMax = 0;
      },
    });
  }

  #post(path: string, body: string, fields: Pick<HttpCall, "headers" | "signal" | "bytesMax"> = {}): Promise<Reply> {
    return this.#http.send({ method: "POST", path, body, ...fields });
  }

  /** Returns the longest long poll the server offers, in seconds; 0 for none. */
  async register(body: RegisterRequest, agent: string): Promise<number> {
    const headers = { "user-agent": agent };
    const reply = await this.#send({ method: "POST", path: "/workers/register", body, headers });
    if (reply.status !== 200) throw unexpected("register", reply);
    this.#reportsMax = Number(reply.headers[reportsHeader] ?? 0) || 0;
    return waitSecsOf(reply);
  }

  /** False when the server does not know this worker (any more). */
  async beatWorker(workerId: string): Promise<boolean> {
    const reply = await this.#send({ method: "POST", path: `/workers/${encodeURIComponent(workerId)}/heartbeat` });
    return reply.status !== 404;
  }

  async claim(body: ClaimRequest, signal?: AbortSignal): Promise<ClaimAnswer> {
    const waitMs = (body.wait_secs ?? 0) * 1_000;
    const reply = await this.#send({ method: "POST", path: "/jobs/claim", body, waitMs, carriesJob: true, signal });
    if (reply.status !== 200) throw unexpected("claim", reply);
    return { claim: parseClaim(reply.text), span: spanIdsOfHeader(reply.headers[traceHeader]), waitSecs: waitSecsOf(reply) };
  }

  /** `state` is present when the server's response contains the state of lease and cancel. */
  async beatLease(leaseId: string, signal: AbortSignal): Promise<{ verdict: Verdict; state: HeartbeatResponse | undefined }> {
    const headers = { accept: "application/json" };
    const reply = await this.#send({ method: "POST", path: `/jobs/${encodeURIComponent(leaseId)}/heartbeat`, headers, signal });
    const verdict = verdictOfStatus(reply.status);
    if (verdict === undefined) throw unexpected("heartbeat", reply);
    return { verdict, state: parseHeartbeat(reply.text) };
  }

  async pushLogs(leaseId: string, chunks: readonly LogChunk[]): Promise<void> {
    const reply = await this.#send({ method: "POST", path: `/jobs/${encodeURIComponent(leaseId)}/logs`, body: { chunks } });
    if (reply.status !== 200) throw unexpected("logs", reply);
  }

  async isCancelled(workflowId: string, jobId: string, signal: AbortSignal): Promise<boolean> {
    const path = `/jobs/${encodeURIComponent(workflowId)}/${encodeURIComponent(jobId)}/cancelled`;
    const reply = await this.#send({ method: "GET", path, signal });
    if (reply.status !== 200) throw unexpected("cancelled", reply);
    return reply.text.trim() === "true";
  }

  /** A page of the journal of a durable function; undefined when the lease has ended. */
  async journal(leaseId: string, after: number, signal: AbortSignal): Promise<string | undefined> {
    const path = `/jobs/${encodeURIComponent(leaseId)}/journal?after=${after}`;
    const reply = await this.#send({ method: "GET", path, carriesJob: true, signal });
    if (reply.status === 409) return undefined;
    if (reply.status !== 200) throw unexpected("journal", reply);
    return reply.text;
  }

  /** Adds commands of a durable function. Returns the news for its turn; only the verdict when the server has sent none. */
  async command(leaseId: string, body: unknown, signal: AbortSignal): Promise<Json> {
    const reply = await this.#batch.send({ leaseId, verb: "commands", body: JSON.stringify(body) }, signal);
    const verdict = verdictOfStatus(reply.status);
    if (verdict === undefined) throw unexpected("commands", reply);
    return verdict === "ok" && reply.text !== "" ? (JSON.parse(reply.text) as Json) : verdict;
  }

  async complete(leaseId: string, body: CompleteRequest, signal: AbortSignal): Promise<Completed> {
    const { next: claim, ...result } = body;
    const report = { leaseId, verb: "complete" as const, body: JSON.stringify(result), key: `${leaseId}-complete`, next: claim };
    const reply = await this.#batch.send(report, signal);
    const verdict = verdictIn("complete", reply);
    const next = body.next === undefined || reply.status !== 200 || reply.text === "" ? undefined : parseClaim(reply.text);
    const tookTurn = reply.status === 200 && reply.headers[turnHeader] !== undefined;
    return { tookTurn, verdict, next, span: next === undefined ? undefined : spanIdsOfHeader(reply.headers[traceHeader]) };
  }

  async fail(leaseId: string, body: FailRequest, signal: AbortSignal): Promise<Verdict> {
    return this.#report(leaseId, "fail", body, signal);
  }

  async defer(leaseId: string, body: DeferRequest, signal: AbortSignal): Promise<Verdict> {
    return this.#report(leaseId, "defer", body, signal);
  }

  close(): Promise<void> {
    return this.#http.close();
  }

  async #report(leaseId: string, verb: "fail" | "defer", body: FailRequest | DeferRequest, signal: AbortSignal): Promise<Verdict> {
    const headers = { [idempotencyHeader]: `${leaseId}-${verb}` };
    const path = `/jobs/${encodeURIComponent(leaseId)}/${verb}`;
    return verdictIn(verb, await this.#send({ method: "POST", path, body, headers, signal }));
  }

  #send({ body, carriesJob, ...request }: Request): Promise<Reply> {
    const bytesMax = carriesJob ? undefined : shortAnswerBytesMax;
    return this.#http.send({ ...request, body: body === undefined ? undefined : JSON.stringify(body), bytesMax });
  }
}

function verdictIn(verb: string, reply: Reply): Verdict {
  const verdict = verdictOfStatus(reply.status);
  if (verdict !== undefined) return verdict;
  // The body itself is refused: a retry cannot help.
  if (reply.status === 413) throw new LongshoreError("LONGSHORE_LIMIT", `The server refuses it as too large: ${quoted(reply)}`);
  if (reply.status === 400 || reply.status === 422)
    throw new LongshoreError("LONGSHORE_BAD_OUTPUT", `The server refuses it: ${quoted(reply)}`);
  throw unexpected(verb, reply);
}

function waitSecsOf({ headers }: Reply): number {
  return Number(headers[waitHeader] ?? 0) || 0;
}

function unexpected(what: string, reply: Reply): LongshoreError {
  const unauthorized = reply.status === 401 || reply.status === 403;
  const code = unauthorized ? "LONGSHORE_UNAUTHORIZED" : "LONGSHORE_UNREACHABLE";
  const hint = unauthorized ? "; pass a token that the server accepts for workers" : "";
  return new LongshoreError(code, `The server answered ${what} with ${quoted(reply)}${hint}.`);
}

/** Undefined for the literal `null`, which means that there is nothing to do. */
function parseClaim(text: string): ClaimResponse | undefined {
  const value = parseOrUndefined(text);
  if (value === null) return undefined;
  const { job, lease } = isObject(value) ? value : {};
  const complete =
    isObject(job) &&
    isObject(lease) &&
    typeof job.job_id === "string" &&
    typeof job.workflow_id === "string" &&
    typeof job.command === "string" &&
    typeof lease.lease_id === "string";
  if (!complete)
    throw new LongshoreError(
      "LONGSHORE_UNREACHABLE",
      `The server answered claim with ${text.slice(0, quoteCharsMax)}, expected null or {job, lease}.`,
    );
  // Other servers may leave out fields that this worker does not need (the reference's documentation shows such responses).
  const jobDefaults = { required_labels: [], attempt: 0, upstream_outputs: {}, enqueued_at_ms: 0, delayed_until_ms: 0 };
  return { job: { ...jobDefaults, ...job }, lease } as unknown as ClaimResponse;
}

function parseHeartbeat(text: string): HeartbeatResponse | undefined {
  const value = text === "" ? undefined : parseOrUndefined(text);
  return isObject(value) && typeof value.cancelled === "boolean" ? (value as unknown as HeartbeatResponse) : undefined;
}
