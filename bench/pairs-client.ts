// The load of the workflow-graph comparison, as its own process: c connections that each claim a job and complete it, again
// and again. It loads the jobs first, and reads every workflow afterwards to see which acknowledged jobs were lost.
import { type ClientName, type HttpConnection, openConnection } from "./http-connection.ts";
import { answerApart, cpuMicroseconds, fineCpuMicroseconds, ownCpuMicroseconds } from "./processes.ts";
import { quantile } from "./stats.ts";

// A claim that finds nothing waits a little. When none has found anything for this long, the server has no more jobs.
const EMPTY_PAUSE_MS = 5;
const EMPTY_LIMIT_MS = 3_000;
// An in-memory scheduler may be slower than its acknowledgements, and other clients may hold the jobs of this one. When nothing has ended
// for this long, the rest counts as lost.
const SETTLE_LIMIT_MS = 5_000;
const SETTLE_PAUSE_MS = 100;

export interface PairsRequest {
  readonly url: string;
  readonly serverPid: number;
  readonly client: ClientName;
  readonly connections: number;
  readonly warmUpPairs: number;
  readonly workflows: number;
  readonly jobs: number;
  /**
   * "independent": all jobs of a workflow are ready at once. "fan-out": all but the first wait for the first. "chain": each waits for the
   * one before.
   */
  readonly shape: "independent" | "fan-out" | "chain";
  /** Only for a chain: the pairs before which the server's CPU time is read. */
  readonly readCpuAt?: readonly number[];
}

export interface PairsAnswer {
  readonly pairs: number;
  readonly perSecond: number;
  readonly serverCpuPerPair: number;
  readonly clientCpuPerPair: number;
  readonly pairP50: number;
  readonly pairP99: number;
  readonly claimP50: number;
  readonly claimP99: number;
  readonly completeP50: number;
  readonly completeP99: number;
  /** The jobs that succeeded, as the server reports. Also those that should have succeeded and did not. */
  readonly finished: number;
  readonly lost: number;
  readonly refused: number;
  readonly repeated: number;
  /** Only for a chain, in order: milliseconds of each pair, and the server's CPU microseconds before some of the pairs. */
  readonly each?: readonly number[];
  readonly serverCpuAt?: Readonly<Record<number, number>>;
}

interface Claim {
  readonly job: { readonly job_id: string; readonly workflow_id: string };
  readonly lease: { readonly lease_id: string };
}

class Pairs {
  readonly seen = new Set<string>();
  readonly claims: number[] = [];
  readonly completes: number[] = [];
  readonly whole: number[] = [];
  repeated = 0;
  refused = 0;
  done = 0;
  lastDone = 0;
  readonly serverCpuAt: Record<number, number> = {};
  #started = 0;
  #lastFound = performance.now();
  #readCpu: ((pair: number) => number | undefined) | undefined;

  /** Each connection continues until `limit` pairs were begun in all, or the server has had nothing for a long time. */
  async run(connections: readonly HttpConnection[], limit: number, readCpu?: (pair: number) => number | undefined): Promise<void> {
    this.#readCpu = readCpu;
    this.#started = 0;
    this.#lastFound = performance.now();
    await Promise.all(connections.map((connection, index) => this.#work(connection, index, limit)));
  }

  /** After the warm-up: jobs that were seen stay marked, so that a job handed out again is noticed. */
  forget(): void {
    for (const times of [this.claims, this.completes, this.whole]) times.length = 0;
    this.done = 0;
  }

  async #work(connection: HttpConnection, index: number, limit: number): Promise<void> {
    const body = JSON.stringify({ worker_id: `bench-${index}`, labels: [], lease_ttl_secs: 60 });
    while (this.#started < limit) {
      this.#started++;
      const began = performance.now();
      const answer = await connection.request("POST", "/api/jobs/claim", body);
      if (answer.status !== 200) throw new Error(`a claim was answered with ${answer.status}: ${answer.body}`);
      const claimed = performance.now();
      const claim = JSON.parse(answer.body) as Claim | null;
      if (claim === null) {
        this.#started--;
        if (claimed - this.#lastFound > EMPTY_LIMIT_MS) return;
        await new Promise((resolve) => setTimeout(resolve, EMPTY_PAUSE_MS));
        continue;
      }
      this.#lastFound = claimed;
      const { status } = await connection.request("POST", `/api/jobs/${claim.lease.lease_id}/complete`, '{"outputs":{}}');
      this.#record(claim, status, began, claimed);
    }
  }

  #record(claim: Claim, status: number, began: number, claimed: number): void {
    const cpu = this.#readCpu?.(this.whole.length);
    if (cpu !== undefined) this.serverCpuAt[this.whole.length] = cpu;
    const now = performance.now();
    this.claims.push(claimed - began);
    this.completes.push(now - claimed);
    this.whole.push(now - began);
    const key = `${claim.job.workflow_id}/${claim.job.job_id}`;
    if (this.seen.has(key)) this.repeated++;
    this.seen.add(key);
    this.lastDone = now;
    if (status === 200) this.done++;
    else this.refused++;
  }
}

function definition(request: PairsRequest): string {
  const waitsFor = (index: number): string[] => {
    if (index === 0 || request.shape === "independent") return [];
    return [request.shape === "chain" ? `j${index - 1}` : "j0"];
  };
  const jobs = Array.from({ length: request.jobs }, (_, index) => ({
    id: `j${index}`,
    name: `j${index}`,
    status: "queued",
    command: "true",
    depends_on: waitsFor(index),
  }));
  return JSON.stringify({ name: "bench", trigger: "manual", jobs });
}

async function load(connection: HttpConnection, request: PairsRequest): Promise<string[]> {
  const body = definition(request);
  const ids: string[] = [];
  for (let index = 0; index < request.workflows; index++) {
    const created = await connection.request("POST", "/api/workflows", body);
    if (created.status !== 201) throw new Error(`a workflow was answered with ${created.status}: ${created.body}`);
    const { id } = JSON.parse(created.body) as { id: string };
    const run = await connection.request("POST", `/api/workflows/${id}/run`);
    if (run.status !== 202) throw new Error(`a run was answered with ${run.status}: ${run.body}`);
    ids.push(id);
  }
  return ids;
}

async function countUnfinished(connection: HttpConnection, ids: readonly string[]): Promise<number> {
  let unfinished = 0;
  for (const id of ids) {
    const { body } = await connection.request("GET", `/api/workflows/${id}/status`);
    const { jobs } = JSON.parse(body) as { jobs: readonly { readonly status: string }[] };
    unfinished += jobs.filter((job) => job.status !== "success").length;
  }
  return unfinished;
}

async function settled(connection: HttpConnection, ids: readonly string[]): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let until = 0; ; ) {
    const unfinished = await countUnfinished(connection, ids);
    if (unfinished < least) until = performance.now() + SETTLE_LIMIT_MS;
    least = Math.min(least, unfinished);
    if (unfinished === 0 || performance.now() > until) return unfinished;
    await new Promise((resolve) => setTimeout(resolve, SETTLE_PAUSE_MS));
  }
}

/** The warm-up of a chain uses a separate chain, because the first steps are part of the measurement. */
async function warmUpAndLoad(connections: readonly HttpConnection[], pairs: Pairs, request: PairsRequest): Promise<string[]> {
  const control = connections[0] as HttpConnection;
  const apart = request.shape === "chain";
  if (apart) await load(control, { ...request, jobs: request.warmUpPairs });
  const ids = apart ? [] : await load(control, request);
  await pairs.run(connections, request.warmUpPairs);
  pairs.forget();
  return apart ? load(control, request) : ids;
}

await answerApart<PairsRequest, PairsAnswer>(async (request) => {
  const connections = await Promise.all(Array.from({ length: request.connections }, () => openConnection(request.url, request.client)));
  const control = connections[0] as HttpConnection;
  const pairs = new Pairs();
  const ids = await warmUpAndLoad(connections, pairs, request);
  const readCpuAt = new Set(request.readCpuAt);
  const readCpu = (pair: number) => (readCpuAt.has(pair) ? fineCpuMicroseconds(request.serverPid) : undefined);

  const before = { server: cpuMicroseconds(request.serverPid), own: ownCpuMicroseconds(), time: performance.now() };
  const remaining = request.workflows * request.jobs - (request.shape === "chain" ? 0 : request.warmUpPairs);
  await pairs.run(connections, remaining, readCpu);
  // Until the last pair: a server that lost jobs keeps the client asking without a result, which is no part of its rate.
  const elapsed = (pairs.lastDone - before.time) / 1000;
  const count = pairs.done;
  const own = ownCpuMicroseconds() - before.own;
  const server = cpuMicroseconds(request.serverPid) - before.server;

  const lost = await settled(control, ids);
  for (const connection of connections) connection.close();
  return {
    pairs: count,
    perSecond: count / elapsed,
    serverCpuPerPair: server / count,
    clientCpuPerPair: own / count,
    pairP50: quantile(pairs.whole, 0.5),
    pairP99: quantile(pairs.whole, 0.99),
    claimP50: quantile(pairs.claims, 0.5),
    claimP99: quantile(pairs.claims, 0.99),
    completeP50: quantile(pairs.completes, 0.5),
    completeP99: quantile(pairs.completes, 0.99),
    finished: request.workflows * request.jobs - lost,
    lost,
    refused: pairs.refused,
    repeated: pairs.repeated,
    ...(request.shape === "chain" ? { each: pairs.whole, serverCpuAt: pairs.serverCpuAt } : {}),
  };
});
