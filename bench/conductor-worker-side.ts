// One worker in a process of its own, ours or the official SDK's, on one server. Measures how fast it empties a queue, or how soon it picks
// up.
import { createRequire } from "node:module";
import { join } from "node:path";
import { task, work } from "longshore";
import { conductor } from "longshore/conductor";
import { type ConductorClient, openConductorClient, TASK } from "./conductor-client.ts";
import { answerApart, cpuMicroseconds, ownCpuMicroseconds } from "./processes.ts";
import { quantile } from "./stats.ts";

export interface WorkerRequest {
  /** `drain`: all tasks are there before the worker. `flow`: they are started while it works. `pick-up`: one at a time. */
  readonly kind: "drain" | "flow" | "pick-up";
  readonly worker: "ours" | "sdk";
  readonly url: string;
  readonly serverPid: number;
  readonly sdk: string;
  readonly concurrency: number;
  readonly updateV2: boolean;
  readonly total: number;
  readonly warmUp: number;
  readonly outbox: string;
}

export interface WorkerAnswer {
  readonly perSecond: number;
  readonly workerCpu: number;
  readonly serverCpu: number;
  /** From before the start call to the first line of the handler; only for `pick-up`. */
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly lost: number;
  readonly repeated: number;
}

type Handler = (n: number) => void;

async function startWorker(request: WorkerRequest, handler: Handler): Promise<() => Promise<void>> {
  return request.worker === "ours" ? startOurs(request, handler) : startSdk(request, handler);
}

async function startOurs({ url, concurrency, updateV2, outbox }: WorkerRequest, handler: Handler): Promise<() => Promise<void>> {
  const noop = task(TASK, async ({ n }: { n: number }) => {
    handler(n);
    return { n };
  });
  const worker = await work({ tasks: [noop], on: conductor(url, { updateV2, outbox }), slots: concurrency, logger: false });
  return () => worker.stop();
}

interface Sdk {
  OrkesClients: { from(config: { serverUrl: string }): Promise<{ getClient(): unknown }> };
  TaskHandler: new (config: unknown) => { startWorkers(): Promise<void>; stopWorkers(): Promise<void> };
  /** What the SDK sets by itself when a server answers that it has no update-v2. */
  TaskRunner: { updateV2Available: boolean | null };
}

async function startSdk({ url, sdk, concurrency, updateV2 }: WorkerRequest, handler: Handler): Promise<() => Promise<void>> {
  const { OrkesClients, TaskHandler, TaskRunner } = createRequire(join(sdk, "package.json"))("@io-orkes/conductor-javascript") as Sdk;
  if (!updateV2) TaskRunner.updateV2Available = false;
  const execute = async ({ inputData: { n } }: { inputData: { n: number } }) => {
    handler(n);
    return { status: "COMPLETED", outputData: { n } };
  };
  const quiet = { debug() {}, info() {}, warn() {}, error: console.error };
  const client = (await OrkesClients.from({ serverUrl: url })).getClient();
  const workers = [{ taskDefName: TASK, execute, concurrency }];
  const running = new TaskHandler({ client, workers, scanForDecorated: false, logger: quiet });
  await running.startWorkers();
  return () => running.stopWorkers();
}

/** Counts executions by number, and reports when so many different ones have been seen. */
class Counter {
  readonly #executions: number[] = [];
  #distinct = 0;
  readonly #waiting: { readonly at: number; readonly resolve: () => void }[] = [];

  readonly handler = (n: number): void => {
    this.#executions[n] = (this.#executions[n] ?? 0) + 1;
    if (this.#executions[n] !== 1) return;
    this.#distinct++;
    for (const { at, resolve } of this.#waiting) if (at === this.#distinct) resolve();
  };

  reached(at: number): Promise<void> {
    return this.#distinct >= at ? Promise.resolve() : new Promise((resolve) => this.#waiting.push({ at, resolve }));
  }

  check(total: number): { lost: number; repeated: number } {
    const extra = this.#executions.reduce((sum, times) => sum + (times ?? 0), 0) - this.#distinct;
    return { lost: total - this.#distinct, repeated: extra };
  }
}

async function throughput(request: WorkerRequest): Promise<WorkerAnswer> {
  const { total, warmUp, serverPid, url, kind } = request;
  const client = await openConductorClient(url);
  await client.define();
  const counter = new Counter();
  const starting = kind === "drain" ? await client.startAll(0, total) : client.startAll(0, total);
  const stop = await startWorker(request, counter.handler);
  await counter.reached(warmUp);
  const before = { at: performance.now(), own: ownCpuMicroseconds(), server: cpuMicroseconds(serverPid) };
  await counter.reached(total);
  const seconds = (performance.now() - before.at) / 1000;
  const measured = total - warmUp;
  const workerCpu = (ownCpuMicroseconds() - before.own) / measured;
  const serverCpu = (cpuMicroseconds(serverPid) - before.server) / measured;
  const ids = await starting;
  await ended(client, ids);
  await stop();
  client.close();
  return {
    perSecond: measured / seconds,
    workerCpu,
    serverCpu,
    meanMs: Number.NaN,
    p50Ms: Number.NaN,
    p99Ms: Number.NaN,
    ...counter.check(total),
  };
}

async function pickUp(request: WorkerRequest): Promise<WorkerAnswer> {
  const client = await openConductorClient(request.url, 1);
  await client.define();
  const counter = new Counter();
  let enteredAt = 0;
  const stop = await startWorker(request, (n) => {
    enteredAt = performance.now();
    counter.handler(n);
  });
  const latencies: number[] = [];
  for (let n = 0; n < request.total; n++) {
    const before = performance.now();
    const id = await client.start(n);
    await counter.reached(n + 1);
    if (n >= request.warmUp) latencies.push(enteredAt - before);
    await ended(client, [id]);
  }
  await stop();
  client.close();
  const mean = latencies.reduce((sum, value) => sum + value, 0) / latencies.length;
  const spans = { meanMs: mean, p50Ms: quantile(latencies, 0.5), p99Ms: quantile(latencies, 0.99) };
  return { perSecond: Number.NaN, workerCpu: Number.NaN, serverCpu: Number.NaN, ...spans, ...counter.check(request.total) };
}

const ASK_EVERY_MS = 5;
const ASKERS = 8;
/** An update that failed is tried again for a minute. */
const COMPLETED_MS_MAX = 90_000;

/** The last results are still being sent when the last handler has run. A run that does not complete is named. */
async function ended(client: ConductorClient, ids: readonly string[]): Promise<void> {
  let next = 0;
  const asker = async (): Promise<void> => {
    for (let index = next++; index < ids.length; index = next++) await completed(client, ids[index] as string);
  };
  await Promise.all(Array.from({ length: ASKERS }, asker));
}

async function completed(client: ConductorClient, id: string): Promise<void> {
  const giveUpAt = performance.now() + COMPLETED_MS_MAX;
  for (;;) {
    const { status } = await client.get<{ status: string }>(`/workflow/${id}/status`);
    if (status === "COMPLETED") return;
    if (status !== "RUNNING" || performance.now() > giveUpAt) throw new Error(`run ${id} is ${status}`);
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
  }
}

await answerApart<WorkerRequest, WorkerAnswer>((request) => (request.kind === "pick-up" ? pickUp(request) : throughput(request)));
