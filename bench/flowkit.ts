// FlowKit. Measures batches a second through worker and coordinator compared with Kafka's client alone, the delay until a batch reaches the
// next node, and the cost of the last batches of a long stream.
import { withFolder } from "./environment.ts";
import { type Broker, bareRate, openStage, type Stage, startBroker } from "./flowkit-peers.ts";
import { type BusName, type Flow, type Growth, type Round, summarise, type Waits } from "./flowkit-report.ts";
import { type HttpConnection, openConnection } from "./http-connection.ts";
import { fineCpuMicroseconds } from "./processes.ts";
import type { Options, Report } from "./report.ts";

interface Size {
  readonly batches: number;
  /** Before anything is measured, on both sides: a broker that has just started takes a third less from its client. */
  readonly warmUp: number;
  readonly bytes: number;
  readonly firsts: number;
  readonly trickled: number;
  readonly long: number;
}

const FULL: Size = { batches: 40_000, warmUp: 40_000, bytes: 1_000, firsts: 100, trickled: 500, long: 100_000 };
const QUICK: Size = { batches: 2_000, warmUp: 500, bytes: 1_000, firsts: 5, trickled: 20, long: 5_000 };

/** Time between two batches of a stream whose waits are measured: each comes alone. */
const TRICKLE_MS = 10;
/** The state of a task is asked for this often; it decides the end of a rate to within this. */
const LOOK_MS = 5;
/** The first and the last of so many equal spans are compared. */
const SPANS = 10;
/** CPU is read this often while a long stream runs. */
const SAMPLE_MS = 50;

export async function flowkit({ rounds: count, quick, only }: Options): Promise<Report> {
  const size = quick ? QUICK : FULL;
  const wants = (part: string): boolean => only === undefined || only === part;
  const rounds: Round[] = [];
  for (let round = 0; round < count; round++) {
    const broker = await startBroker();
    try {
      const ceiling = wants("rate") ? await bareRate(broker, size) : Number.NaN;
      const buses: [BusName, Broker | undefined][] = [
        ["embedded", undefined],
        ["Kafka", broker],
      ];
      const flows: Flow[] = [];
      const waits: Waits[] = [];
      for (const [bus, on] of buses) {
        await withFolder(async (folder) => {
          const stage = await openStage(folder, on);
          const connection = await openConnection(stage.url, "undici");
          try {
            if (wants("rate")) flows.push(await rate(bus, stage, connection, size));
            if (wants("latency")) waits.push(await latency(bus, stage, connection, size));
          } finally {
            connection.close();
            await stage.stop();
          }
        });
      }
      const growth = wants("growth") ? await withFolder((folder) => grow(folder, size)) : undefined;
      rounds.push({ ceiling, flows, waits, growth });
    } finally {
      await broker.stop();
    }
  }
  return summarise(rounds, size.long);
}

async function rate(bus: BusName, stage: Stage, connection: HttpConnection, size: Size): Promise<Flow> {
  await stream(connection, { count: size.warmUp, bytes: size.bytes });
  const cpu = cpuOf(stage);
  const { task, endedAt } = await stream(connection, { count: size.batches, bytes: size.bytes });
  const { server, worker } = cpu();
  const startedAt = await stage.said<number>(task, "startedAt");
  const kept = await count(connection, task);
  return {
    bus,
    perSecond: (size.batches / (endedAt - startedAt)) * 1_000,
    serverCpu: server / size.batches,
    workerCpu: worker / size.batches,
    batches: size.batches,
    kept,
  };
}

async function latency(bus: BusName, stage: Stage, connection: HttpConnection, size: Size): Promise<Waits> {
  const first: number[] = [];
  for (let at = 0; at < size.firsts + 1; at++) {
    const { task } = await stream(connection, { count: 1, bytes: 100 }, true);
    const [wait = Number.NaN] = await stage.said<number[]>(task, "waits");
    // The first round warms up.
    if (at > 0) first.push(wait);
  }
  const { task } = await stream(connection, { count: size.trickled, bytes: 100, everyMs: TRICKLE_MS }, true);
  const all = await stage.said<number[]>(task, "waits");
  return { bus, first, next: all.slice(1), lost: size.trickled - all.length };
}

async function grow(folder: string, size: Size): Promise<Growth> {
  const stage = await openStage(folder, undefined);
  const connection = await openConnection(stage.url, "undici");
  try {
    await stream(connection, { count: size.warmUp, bytes: size.bytes });
    const samples: { at: number; cpu: number }[] = [];
    const sample = (): void => void samples.push({ at: now(), cpu: fineCpuMicroseconds(stage.serverPid) });
    const timer = setInterval(sample, SAMPLE_MS);
    sample();
    const { task } = await stream(connection, { count: size.long, bytes: size.bytes });
    sample();
    clearInterval(timer);
    const marks = await keptAt(connection, task, size.long);
    const spans = marks
      .slice(1)
      .map((to, at) => ({ ms: to - (marks[at] as number), cpu: cpuAt(samples, to) - cpuAt(samples, marks[at] as number) }));
    return { spans, batches: size.long, kept: await count(connection, task) };
  } finally {
    connection.close();
    await stage.stop();
  }
}

/** When the first batch was stored, and the last of each tenth. Work in progress on the worker does not count. */
async function keptAt(connection: HttpConnection, task: string, batches: number): Promise<number[]> {
  const marks: number[] = [];
  for (let span = 0; span <= SPANS; span++) {
    const after = Math.max(0, Math.round((batches * span) / SPANS) - 1);
    const { items } = await ask<Page>(connection, "GET", `/flowkit/v1/tasks/${task}/artifacts?node=u&limit=1&after=${after}`);
    marks.push(Date.parse(items[0]?.created_at ?? ""));
  }
  return marks;
}

/** Between two readings, CPU is assumed to grow evenly with time. */
function cpuAt(samples: readonly { at: number; cpu: number }[], at: number): number {
  const later = samples.findIndex((sample) => sample.at >= at);
  const after = samples[later === -1 ? samples.length - 1 : later] as { at: number; cpu: number };
  const before = samples[Math.max(0, (later === -1 ? samples.length : later) - 1)] as { at: number; cpu: number };
  const share = after.at === before.at ? 0 : (at - before.at) / (after.at - before.at);
  return before.cpu + (after.cpu - before.cpu) * Math.min(1, Math.max(0, share));
}

const now = (): number => performance.timeOrigin + performance.now();

function cpuOf({ serverPid, workerPid }: Stage): () => { server: number; worker: number } {
  const before = { server: fineCpuMicroseconds(serverPid), worker: fineCpuMicroseconds(workerPid) };
  return () => ({ server: fineCpuMicroseconds(serverPid) - before.server, worker: fineCpuMicroseconds(workerPid) - before.worker });
}

interface Order {
  readonly count: number;
  readonly bytes: number;
  readonly everyMs?: number;
}

/** Runs one node, or two: then the second reads the results of the first as they come. */
async function stream(connection: HttpConnection, order: Order, read = false): Promise<{ task: string; endedAt: number }> {
  const give = { node_id: "u", type: "give", io: { input_inline: { everyMs: 0, ...order } } };
  const route = { input_adapter: "pull.from_artifacts", input_args: { from_nodes: ["u"] } };
  const tap = { node_id: "d", type: "tap", depends_on: ["u"], io: { start_when: "first_batch", input_inline: route } };
  const { task_id: task } = await ask<{ task_id: string }>(connection, "POST", "/flowkit/v1/tasks", {
    graph: { nodes: read ? [give, tap] : [give] },
  });
  for (;;) {
    const { status } = await ask<{ status: string }>(connection, "GET", `/flowkit/v1/tasks/${task}`);
    if (status === "finished") return { task, endedAt: now() };
    if (status === "failed") throw new Error(`task ${task} failed`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

interface Page {
  readonly items: readonly { readonly batch_uid: string; readonly created_at: string }[];
  readonly next: number | null;
}

async function count(connection: HttpConnection, task: string): Promise<number> {
  const uids = new Set<string>();
  for (let after: number | null = 0; after !== null; ) {
    const path: string = `/flowkit/v1/tasks/${task}/artifacts?node=u&limit=1000&after=${after}`;
    const page: Page = await ask<Page>(connection, "GET", path);
    for (const { batch_uid } of page.items) {
      if (uids.has(batch_uid)) throw new Error(`batch ${batch_uid} is there twice`);
      uids.add(batch_uid);
    }
    after = page.next;
  }
  return uids.size;
}

async function ask<Answer>(connection: HttpConnection, method: "GET" | "POST", path: string, body?: unknown): Promise<Answer> {
  const answer = await connection.request(method, path, body === undefined ? undefined : JSON.stringify(body));
  if (answer.status >= 300) throw new Error(`${method} ${path} was answered with ${answer.status}: ${answer.body.slice(0, 500)}`);
  return JSON.parse(answer.body) as Answer;
}
