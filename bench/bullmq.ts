// BullMQ as its users run it: one queue, one worker with c slots, finished jobs kept, an fsync before every response of Redis.
import { Queue, Worker } from "bullmq";
import { Redis as Client } from "ioredis";
import type { Input, Output, Side } from "./closed-loop.ts";
import { cpuMicroseconds } from "./processes.ts";
import { startRedis } from "./redis.ts";

const QUEUE = "bench";

export interface OpenBullmq extends Side {
  close(): Promise<void>;
}

export async function openBullmq(folder: string, slots: number, handler: (input: Input) => Output): Promise<OpenBullmq> {
  const redis = await startRedis(folder);
  const connect = () => new Client({ host: "127.0.0.1", port: redis.port, maxRetriesPerRequest: null });
  const clients = [connect(), connect()] as const;
  const queue = new Queue<Input, Output>(QUEUE, { connection: clients[0] });
  const worker = new Worker<Input, Output>(QUEUE, async (job) => handler(job.data), { connection: clients[1], concurrency: slots });
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);

  // The worker's own event comes after Redis has acknowledged the result, and needs no second read from Redis, as QueueEvents would. So it
  // is the most favourable way for BullMQ.
  const waiting = new Map<string, (output: Output) => void>();
  const early = new Map<string, Output>();
  worker.on("completed", (job, output) => {
    const id = String(job.id);
    const resolve = waiting.get(id);
    if (resolve) {
      waiting.delete(id);
      resolve(output);
    } else early.set(id, output);
  });
  return {
    storeCpu: () => cpuMicroseconds(redis.pid),
    submit: async (input) => {
      const { id = "" } = await queue.add("noop", input);
      const output = early.get(id);
      if (output !== undefined) {
        early.delete(id);
        return output;
      }
      return new Promise((resolve) => waiting.set(id, resolve));
    },
    close: async () => {
      await worker.close();
      await queue.close();
      for (const client of clients) client.disconnect();
      await redis.stop();
    },
  };
}
