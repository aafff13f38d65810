// The real Conductor server and the official JavaScript SDK, as the conformance suite fetches them.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServer } from "./ours.ts";
import { start } from "./processes.ts";

export interface Peers {
  readonly jar: string;
  readonly java: string;
  /** The folder from which the SDK resolves. */
  readonly sdk: string;
}

export function conductorPeers(): Peers {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const tsx = join(root, "node_modules", "tsx", "dist", "cli.mjs");
  const { status, stdout } = spawnSync(process.execPath, [tsx, join(root, "packages/conformance/conductor/where.ts")], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", 2],
  });
  if (status !== 0) throw new Error("the Conductor peers could not be fetched");
  return JSON.parse(stdout) as Peers;
}

export interface ConductorServer {
  readonly url: string;
  readonly pid: number;
  /** From the start of its process to a healthy answer. */
  readonly readyMs: number;
  stop(): Promise<void>;
}

export async function startOurs(folder: string): Promise<ConductorServer> {
  const before = performance.now();
  // The target of the HTTP tasks is on this machine.
  const server = await startServer(folder, [], { CONDUCTOR_HTTP_TARGETS: "127.0.0.1" });
  await healthy(server.url);
  return { ...server, readyMs: performance.now() - before };
}

/** The settings with which it can serve concurrent callers on SQLite. Everything else has the default. */
export async function startReference(folder: string, { jar, java }: Peers): Promise<ConductorServer> {
  const database = join(folder, "conductor.db");
  const config = join(folder, "conductor.properties");
  const lines = [
    "server.address=127.0.0.1",
    "server.port=0",
    `spring.datasource.url=jdbc:sqlite:${database}?busy_timeout=15000&journal_mode=WAL&synchronous=NORMAL&transaction_mode=IMMEDIATE`,
    "conductor.db.type=sqlite",
    "conductor.queue.type=sqlite",
    "conductor.indexing.type=sqlite",
    "conductor.elasticsearch.version=0",
    "conductor.workflow-execution-lock.type=local_only",
    "conductor.integrations.ai.enabled=false",
    "conductor.scheduler.enabled=false",
    "conductor.grpc-server.enabled=false",
    "management.health.elasticsearch.enabled=false",
    // Its log would be work that ours does not do.
    "logging.level.root=ERROR",
    "logging.level.org.springframework.boot.web.embedded.tomcat=INFO",
  ];
  writeFileSync(config, `${lines.join("\n")}\n`);
  const before = performance.now();
  const running = start(java, ["-Xmx1g", "-jar", jar], { cwd: folder, env: { CONDUCTOR_CONFIG_FILE: config } });
  const line = await running.line((text) => text.includes("Tomcat started on port"), REFERENCE_READY_MS_MAX);
  const url = `http://127.0.0.1:${/started on port (\d+)/.exec(line)?.[1]}`;
  await healthy(url);
  return { url, pid: running.pid, readyMs: performance.now() - before, stop: running.stop };
}

/** It takes half a minute on an idle machine. */
const REFERENCE_READY_MS_MAX = 240_000;
const ASK_EVERY_MS = 5;

async function healthy(url: string): Promise<void> {
  for (;;) {
    const answer = await fetch(`${url}/health`).catch(() => undefined);
    await answer?.arrayBuffer();
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
  }
}
