// The real nats-server with JetStream, on loopback.
import type { Child } from "../src/child.ts";
import type { Stage } from "../src/stage.ts";
import { requireTool } from "../src/tools.ts";

export interface Nats {
  readonly url: string;
  readonly port: number;
  /** The folder of its streams. A server that is started with the same folder continues with its data. */
  readonly data: string;
  readonly child: Child;
}

/** The server chooses it. */
const ANY_PORT = -1;

export async function startNats(stage: Stage, options: { data?: string; port?: number } = {}): Promise<Nats> {
  requireTool("nats");
  const data = options.data ?? stage.folder();
  const args = ["-a", "127.0.0.1", "-p", String(options.port ?? ANY_PORT), "-js", "-sd", data];
  const child = stage.start("nats-server", args, { name: "nats-server", cwd: data });
  const [, port] = await child.printed(/Listening for client connections on 127\.0\.0\.1:(\d+)/);
  await child.printed(/Server is ready/);
  return { url: `nats://127.0.0.1:${port}`, port: Number(port), data, child };
}
