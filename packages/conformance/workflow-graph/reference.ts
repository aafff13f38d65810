// The real programs of workflow-graph, unchanged: its server, which keeps everything in memory, and its worker.
import type { Child } from "../src/child.ts";
import { peerBinary } from "../src/peers.ts";
import { assertPrivateNetwork } from "../src/private-network.ts";
import type { Stage } from "../src/stage.ts";

export interface ReferenceServer {
  readonly url: string;
  readonly child: Child;
}

export async function startReferenceServer(stage: Stage, options: { port?: number } = {}): Promise<ReferenceServer> {
  assertPrivateNetwork("workflow-graph-server");
  const child = stage.start(peerBinary("workflow-graph-server"), [], {
    name: "workflow-graph-server",
    // It serves its working directory and reads ./workflows, so it gets an empty directory.
    cwd: stage.folder(),
    env: { PORT: String(options.port ?? 0) },
  });
  // It may listen on another port than the configured one, so the port is read from its output.
  const [, port] = await child.printed(/listening on http:\/\/localhost:(\d+)/);
  if (options.port && String(options.port) !== port) throw new Error(`workflow-graph-server took port ${port}, not ${options.port}`);
  return { url: `http://127.0.0.1:${port}`, child };
}

export function startReferenceWorker(stage: Stage, url: string, options: { labels?: string[]; env?: Record<string, string> } = {}): Child {
  return stage.start(peerBinary("workflow-graph-worker-sdk"), [], {
    name: "workflow-graph-worker-sdk",
    cwd: stage.folder(),
    env: { ...options.env, SERVER_URL: url, WORKER_LABELS: (options.labels ?? []).join(",") },
  });
}
