// What the FlowKit benchmark runs: a real Kafka, and servers and workers of ours, each a process of its own.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServer } from "./ours.ts";
import { type Running, start } from "./processes.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Kafka may have to be fetched first. */
const BROKER_TIMEOUT_MS = 180_000;

export interface Broker {
  readonly address: string;
  stop(): Promise<void>;
}

export async function startBroker(): Promise<Broker> {
  const tsx = join(root, "node_modules", "tsx", "dist", "cli.mjs");
  const running = start(process.execPath, [tsx, join(root, "packages/conformance/flowkit/broker.ts")]);
  const line = await running.line((text) => text.startsWith('{"broker"'), BROKER_TIMEOUT_MS);
  return { address: (JSON.parse(line) as { broker: string }).broker, stop: running.stop };
}

export interface Stage {
  readonly url: string;
  readonly serverPid: number;
  readonly workerPid: number;
  /** What a node of this task has printed. */
  said<Fact>(task: string, field: string): Promise<Fact>;
  stop(): Promise<void>;
}

/** Without a broker, the server is bus and store in one. */
export async function openStage(folder: string, broker: Broker | undefined): Promise<Stage> {
  const server = await startServer(folder, broker === undefined ? [] : ["--flowkit-brokers", broker.address]);
  const program = fileURLToPath(new URL("./flowkit-worker.js", import.meta.url));
  const env = { SERVER_URL: server.url, ...(broker === undefined ? {} : { BROKERS: broker.address }) };
  const worker: Running = start(process.execPath, [program], { env });
  await worker.line((text) => text === '{"ready":true}');
  return {
    url: server.url,
    serverPid: server.pid,
    workerPid: worker.pid,
    async said<Fact>(task: string, field: string): Promise<Fact> {
      const line = await worker.line((text) => text.includes(task) && text.includes(`"${field}"`), BROKER_TIMEOUT_MS);
      return (JSON.parse(line) as Record<string, Fact>)[field] as Fact;
    },
    async stop() {
      await worker.stop();
      await server.stop();
    },
  };
}

/** Kafka's client by itself: records a second, from the first that is sent to the last that is read, after a warm-up like ours. */
export async function bareRate(
  broker: Broker,
  { batches, bytes, warmUp }: { batches: number; bytes: number; warmUp: number },
): Promise<number> {
  const program = fileURLToPath(new URL("./flowkit-bare.js", import.meta.url));
  const topic = `ceiling-${process.hrtime.bigint()}`;
  const numbers = [batches, bytes, warmUp].map(String);
  const side = (role: string): Running => start(process.execPath, [program, role, broker.address, topic, ...numbers]);
  await side("create").line((text) => text === '{"ready":true}');
  const reader = side("consume");
  await reader.line((text) => text === '{"ready":true}');
  const writer = side("produce");
  const started = JSON.parse(await writer.line((text) => text.includes("startedAt"), BROKER_TIMEOUT_MS)) as { startedAt: number };
  const ended = JSON.parse(await reader.line((text) => text.includes("endedAt"), BROKER_TIMEOUT_MS)) as { seen: number; endedAt: number };
  await Promise.all([writer.stop(), reader.stop()]);
  if (ended.seen !== warmUp + batches) throw new Error(`the reader saw ${ended.seen} of ${warmUp + batches} records`);
  return (batches / (ended.endedAt - started.startedAt)) * 1_000;
}
