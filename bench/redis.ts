// A separate Redis with an fsync before every response, so that it is comparable with a durable store.
import { freePort, requireCommand } from "./environment.ts";
import { start } from "./processes.ts";

export interface Redis {
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

export async function startRedis(folder: string): Promise<Redis> {
  requireCommand("redis-server", "redis-server");
  const port = await freePort();
  const durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
  const running = start("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, ...durable]);
  await running.line((line) => line.includes("Ready to accept connections"));
  return { port, pid: running.pid, stop: running.stop };
}
