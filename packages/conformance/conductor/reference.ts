// The real Conductor server, unchanged, on SQLite and loopback. It takes half a minute to start, so all tests of a file share one server.
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
  /** The folder of its database. A server that is started with the same folder continues with its data. */
  readonly data: string;
  readonly child: Child;
}

export interface ReferenceOptions {
  data?: string;
  port?: number;
  /**
   * How it begins a transaction. With SQLite's default, deferred, it returns SQLITE_BUSY as soon as two callers write at the same time. With
   * `immediate`, any number of callers can write, but removing a run causes a deadlock in the server and breaks all its connections.
   */
  transactions?: "immediate" | "deferred";
  /** Switches on the scheduler and file storage, and gives the server these variables. */
  services?: Record<string, string>;
}

export async function startReferenceServer(stage: Stage, options: ReferenceOptions = {}): Promise<ReferenceServer> {
  const data = options.data ?? stage.folder();
  const config = join(data, "conductor.properties");
  writeFileSync(config, properties(data, options));
  // Fast compilation, without most optimizations: the tests start the server often and use each only for a short time.
  const flags = ["-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
  const child = stage.start(conductorJava(), [...flags, "-jar", conductorJar()], {
    name: "conductor-server",
    cwd: data,
    env: { CONDUCTOR_CONFIG_FILE: config, ...options.services },
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

/** The address of the server in the addresses of files. Programs that only read the addresses need no other one. */
export const FILES_URL = "http://127.0.0.1:8080";

function properties(data: string, { port = 0, transactions = "immediate", services }: ReferenceOptions): string {
  const file = join(data, "conductor.db");
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
    `conductor.integrations.ai.enabled=${services !== undefined}`,
    `conductor.scheduler.enabled=${services !== undefined}`,
    ...(services === undefined ? [] : filesIn(join(data, "files"))),
    "conductor.grpc-server.enabled=false",
    "management.health.elasticsearch.enabled=false",
    // The server logs several lines for each task. The tests need only the line with the port.
    "logging.level.root=ERROR",
    "logging.level.org.springframework.boot.web.embedded.tomcat=INFO",
    "",
  ].join("\n");
}

function filesIn(folder: string): string[] {
  return [
    "conductor.file-storage.enabled=true",
    "conductor.file-storage.type=conductor",
    `conductor.file-storage.conductor.directory=${folder}`,
    `conductor.file-storage.conductor.base-url=${FILES_URL}`,
  ];
}
