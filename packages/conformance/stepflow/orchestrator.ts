// The real orchestrator, unchanged. It listens on every address and has no option against it, so it runs in a private network only.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Child } from "../src/child.ts";
import { exchange } from "../src/exchange.ts";
import { assertPrivateNetwork } from "../src/private-network.ts";
import type { Stage } from "../src/stage.ts";
import { until } from "../src/until.ts";
import { orchestratorProgram, type Release, releases } from "./fetch.ts";

export interface Orchestrator {
  readonly release: Release;
  readonly url: string;
  /** Without a scheme, as the queue protocol writes addresses. */
  readonly address: string;
  readonly port: number;
  /** The folder of its configuration and, if it has one, of its database. */
  readonly data: string;
  readonly child: Child;
}

export interface OrchestratorOptions {
  data?: string;
  port?: number;
  /** How its plugin `python` reaches a worker. Default: through the queue `python`. */
  plugin?: Record<string, unknown>;
  /** Stores its data in a database. Without it, all data is lost when the process ends. */
  durable?: boolean;
  retry?: Record<string, unknown>;
  env?: Record<string, string>;
  /** The whole configuration. The options above are then ignored. */
  config?: string;
}

export async function startOrchestrator(stage: Stage, release: Release, options: OrchestratorOptions = {}): Promise<Orchestrator> {
  const name = `stepflow-server ${releases[release].orchestrator}`;
  assertPrivateNetwork(name);
  const data = options.data ?? stage.folder();
  const config = join(data, "stepflow-config.yml");
  // Every JSON text is also YAML.
  writeFileSync(config, options.config ?? JSON.stringify(configuration(release, data, options), null, 2));
  const args = ["--port", String(options.port ?? 0), "--config", config, "--log-level", "warn"];
  const child = stage.start(orchestratorProgram(release), args, { name, cwd: data, env: options.env ?? {} });
  // While a worker is connected to its stream, it does not end on SIGTERM.
  stage.onClose(() => child.signal("SIGKILL"));
  const [, port = ""] = await child.printed(/^\{"port":\s*(\d+)\}$/m);
  const url = `http://127.0.0.1:${port}`;
  await until(`${name} to be healthy`, async () => {
    const { status } = await exchange(url, { method: "GET", path: "/api/v1/health" });
    return status === 200 ? true : undefined;
  });
  return { release, url, address: `127.0.0.1:${port}`, port: Number(port), data, child };
}

function configuration(release: Release, data: string, { plugin, durable, retry }: OrchestratorOptions): Record<string, unknown> {
  // A route is a plain prefix since 0.13; before, it was a pattern.
  const route = (prefix: string): string => (release === "0.13" ? prefix : `${prefix}/{*component}`);
  return {
    plugins: { builtin: { type: "builtin" }, python: plugin ?? { type: "grpc", queueName: "python" } },
    routes: { [route("/python")]: [{ plugin: "python" }], [route("/builtin")]: [{ plugin: "builtin" }] },
    storageConfig: durable ? { type: "sqlite", databaseUrl: `sqlite:${join(data, "stepflow.db")}?mode=rwc` } : { type: "inMemory" },
    ...(retry === undefined ? {} : { retry }),
  };
}
