// The real Conductor server, unchanged, on SQLite and loopback. It takes half a minute to start, so a file of tests shares one.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Child } from "../src/child.ts";
import { exchange } from "../src/exchange.ts";
import type { Stage } from "../src/stage.ts";
import { until } from "../src/until.ts";
import { conductorJar, conductorJava } from "./fetch.ts";

export interface ReferenceServer {
  readonly url: string;
  readonly port: number;
  /** Holds its database; a server started on it again goes on where this one ended. */
  readonly data: string;
  readonly child: Child;
}

export interface ReferenceOptions {
  data?: string;
  port?: number;
  /**
   * How it begins a transaction. With SQLite's own way, deferred, it answers SQLITE_BUSY as soon as two callers write at once; with
   * `immediate` it bears any number of callers, but removing a run locks itself out and breaks every connection that it has.
   */
  transactions?: "immediate" | "deferred";
}

export async function startReferenceServer(stage: Stage, options: ReferenceOptions = {}): Promise<ReferenceServer> {
  const data = options.data ?? stage.folder();
  const config = join(data, "conductor.properties");
  writeFileSync(config, properties(join(data, "conductor.db"), options));
  // Compiled quickly rather than well: the tests start it more than they use it.
  const flags = ["-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
  const child = stage.start(conductorJava(), [...flags, "-jar", conductorJar()], {
    name: "conductor-server",
    cwd: data,
    env: { CONDUCTOR_CONFIG_FILE: config },
  });
  const port = await until(
    "conductor-server to listen",
    () => {
      if (child.hasEnded()) throw new Error(`conductor-server ended at its start; it wrote:\n${child.output().slice(-4_000)}`);
      return /Tomcat started on port (\d+)/.exec(child.output())?.[1];
    },
    () => child.output().slice(-2_000),
  );
  const url = `http://127.0.0.1:${port}`;
  await until("conductor-server to be healthy", async () => {
    const { status } = await exchange(url, { method: "GET", path: "/health" });
    return status === 200 ? true : undefined;
  });
  return { url, port: Number(port), data, child };
}

function properties(file: string, { port = 0, transactions = "immediate" }: ReferenceOptions): string {
  const mode = transactions === "immediate" ? "&transaction_mode=IMMEDIATE" : "";
  return [
    "server.address=127.0.0.1",
    `server.port=${port}`,
    `spring.datasource.url=jdbc:sqlite:${file}?busy_timeout=15000&journal_mode=WAL&synchronous=NORMAL${mode}`,
    "conductor.db.type=sqlite",
    "conductor.queue.type=sqlite",
    "conductor.indexing.type=sqlite",
    "conductor.elasticsearch.version=0",
    "conductor.workflow-execution-lock.type=local_only",
    "conductor.integrations.ai.enabled=false",
    "conductor.scheduler.enabled=false",
    "conductor.grpc-server.enabled=false",
    "management.health.elasticsearch.enabled=false",
    // It writes several lines for each task; only the one with the port is wanted.
    "logging.level.root=ERROR",
    "logging.level.org.springframework.boot.web.embedded.tomcat=INFO",
    "",
  ].join("\n");
}
