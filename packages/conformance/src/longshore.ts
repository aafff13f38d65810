// Our server and worker, started as a user starts them: the built command in a separate process.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Child } from "./child.ts";
import { bothNodes, sharedStore } from "./cluster.ts";
import type { Stage } from "./stage.ts";

const command = fileURLToPath(new URL("../../longshore/dist/cli/main.js", import.meta.url));

export interface OurServer {
  readonly url: string;
  readonly data: string;
  /** Of a cluster: both nodes. */
  readonly child: Child;
  /** The node that owned the data at the start, when our server is a cluster. */
  readonly owner?: Child;
}

export interface OurServerOptions {
  /** The data folder of an earlier server, to continue with its data. */
  data?: string;
  port?: number;
  workflows?: string;
  /** A Stepflow configuration, as text or as a value that is written as JSON. */
  stepflow?: string | Record<string, unknown>;
  /** The services of FlowKit and its configuration. */
  flowkit?: { brokers: string; mongo?: string; config?: Record<string, unknown> };
  /** Variables of its environment. */
  env?: Record<string, string>;
}

/** Our server. In the tests of a cluster these are two nodes, with the address of the node that does not own the data. */
export async function startOurServer(stage: Stage, options: OurServerOptions = {}): Promise<OurServer> {
  const data = options.data ?? stage.folder();
  const flags = ["--stepflow-files", stage.folder(), "--json"];
  if (options.workflows) flags.push("--workflows", options.workflows);
  if (options.stepflow !== undefined) flags.push("--stepflow-config", stepflowConfig(data, options.stepflow));
  if (options.flowkit !== undefined) flags.push(...flowkitFlags(data, options.flowkit));
  const start = async (place: readonly string[], port = 0) => {
    const args = [builtCommand(), "start", "--port", String(port), ...place, ...flags];
    const child = stage.start(process.execPath, args, { name: "longshore start", cwd: data, env: options.env ?? {} });
    const [line] = await child.printed(/^\{.*"ready":\s*true.*\}$/m);
    return { child, url: (JSON.parse(line) as { url: string }).url };
  };
  const store = sharedStore(data);
  if (store === undefined) return { data, ...(await start(["--data", data], options.port)) };
  const { child: owner } = await start(["--store", store]);
  const other = await start(["--store", store], options.port);
  return { data, url: other.url, child: bothNodes(owner, other.child), owner };
}

function flowkitFlags(folder: string, { brokers, mongo, config = {} }: NonNullable<OurServerOptions["flowkit"]>): string[] {
  const file = join(folder, "flowkit.json");
  writeFileSync(file, JSON.stringify(config));
  return ["--flowkit-brokers", brokers, "--flowkit-config", file, ...(mongo === undefined ? [] : ["--flowkit-mongo", mongo])];
}

function stepflowConfig(folder: string, config: string | Record<string, unknown>): string {
  const file = join(folder, "stepflow-config.yml");
  // Every JSON text is also YAML.
  writeFileSync(file, typeof config === "string" ? config : JSON.stringify(config, null, 2));
  return file;
}

export interface OurWorkerOptions {
  /** A module that exports tasks; without one the worker runs shell commands. */
  file?: string;
  labels?: string[];
  env?: Record<string, string>;
}

/** `longshore work` with a file of handlers. Without a file, it runs shell commands, and is a complete worker of the protocol. */
export function startOurWorker(stage: Stage, url: string, options: OurWorkerOptions = {}): Child {
  const args = ["work", ...(options.file ? [options.file] : ["--shell"]), "--on", url];
  if (options.labels) args.push("--labels", options.labels.join(","));
  return stage.start(process.execPath, [builtCommand(), ...args], { name: "longshore work", cwd: stage.folder(), env: options.env ?? {} });
}

function builtCommand(): string {
  if (!existsSync(command)) throw new Error(`${command} does not exist: run npm run build first`);
  return command;
}
