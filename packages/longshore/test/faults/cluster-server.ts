// A cluster instead of one server: a fault of "the server" hits the node that owns the data, and sometimes another node. Clients and workers
// connect through a load balancer, which chooses a node for each connection.

import { Cluster, type ClusterOptions, type NodeProcess } from "../support/cluster.ts";
import { openLink } from "./link.ts";
import type { ManagedProcess } from "./processes.ts";

/** Short, so that a node that hangs is replaced within the stops of a round. */
const LEASE = ["--lease", "1s"];
/** How often the owner is looked up. */
const LOOK_MS = 50;
/** Each time after this many faults, one hits a node that does not own the data. */
const OTHER_EVERY = 4;

export interface ClusterServer {
  server: ManagedProcess;
  port: number;
  cluster: Cluster;
  close(): Promise<void>;
}

export async function openClusterServer(options: ClusterOptions): Promise<ClusterServer> {
  const cluster = await Cluster.open({ ...options, flags: [...LEASE, ...(options.flags ?? [])] });
  const front = await openLink(cluster.nextPort);
  const write = (kind: "process-started" | "process-killed" | "process-ended" | "process-stopped" | "process-resumed") =>
    options.history.write({ kind, name: "server" });
  let owner: NodeProcess | null = null;
  let looking = false;
  const looks = setInterval(() => {
    if (looking) return;
    looking = true;
    void cluster.ownerNow().then((found) => {
      owner = found ?? owner;
      looking = false;
    });
  }, LOOK_MS);
  let hits = 0;
  const target = (): NodeProcess => {
    const there = cluster.nodes.filter((node) => node.isThere);
    const others = there.filter((node) => node !== owner);
    const hit = ++hits % OTHER_EVERY === 0 ? (others[0] ?? owner) : owner;
    return hit?.isThere ? hit : (there[0] as NodeProcess);
  };
  let paused: NodeProcess | null = null;
  const server: ManagedProcess = {
    name: "server",
    async start() {
      for (const node of cluster.nodes) if (!node.isThere && node !== paused) await node.start();
      write("process-started");
    },
    async kill() {
      write("process-killed");
      await target().kill();
    },
    async stumble(afterMs) {
      for (const node of cluster.nodes) if (!node.isThere && node !== paused) await node.process.stumble(afterMs);
    },
    async end() {
      // From here on: the next owner takes over before this process has ended.
      write("process-ended");
      await target().end();
    },
    // The next owner gives every hold a whole term, as a server that was killed and started does.
    pause() {
      write("process-killed");
      paused = target();
      paused.pause();
    },
    resume() {
      paused?.resume();
      paused = null;
      write("process-started");
    },
    isPaused: () => paused !== null,
    pid: () => owner?.process.pid(),
  };
  return {
    server,
    port: Number(new URL(front.url).port),
    cluster,
    async close() {
      clearInterval(looks);
      await cluster.close();
      await front.close();
    },
  };
}
