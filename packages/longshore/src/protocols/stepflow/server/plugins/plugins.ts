// Starts everything that a configuration needs: worker processes of queues, calls to workers over HTTP, mock components. It starts nothing
// that the operator's file does not name.

import { LongshoreError } from "../../../../core/errors.ts";
import { ProcessGroups } from "../../../../core/process-groups.ts";
import { parseAddress } from "../address.ts";
import type { HttpPlugin, Launch, Plugin, StepflowConfig } from "../config/config.ts";
import type { QueuePlugin } from "../config/queues.ts";
import type { RegisteredComponent } from "../config/registered-components.ts";
import type { PluginHost } from "./host.ts";
import { mockLane } from "./mock.ts";
import { findProgram } from "./program.ts";
import { QueueProcess } from "./queue-process.ts";

export interface Plugins {
  /** The components of a worker that is called. Other workers register themselves. */
  discover(plugin: string, signal: AbortSignal): Promise<readonly RegisteredComponent[]>;
  /** Lets open calls finish for at most `graceMs`, then ends every process. */
  close(graceMs?: number): Promise<void>;
}

/** The other parts of the host are the same for every plugin and are made here. */
export type PluginsHost = Omit<PluginHost, "groups" | "directory" | "blobApi">;

interface Running {
  start(): void;
  close(graceMs?: number): Promise<void>;
  discover?(signal: AbortSignal): Promise<readonly RegisteredComponent[]>;
}

/** Throws LONGSHORE_BAD_CONFIG, before anything is started, when a program is missing or a worker could not reach the server. */
export async function startPlugins(config: StepflowConfig, deps: PluginsHost): Promise<Plugins> {
  const url = deps.url === null ? null : fromHere(deps.url);
  const host: PluginHost = { ...deps, url, groups: new ProcessGroups(), directory: config.directory, blobApi: config.blobApi };
  for (const plugin of config.plugins.values()) checkLaunch(plugin, host);
  const running = new Map<string, Running>();
  for (const plugin of config.plugins.values()) {
    const started = await runningOf(plugin, host);
    if (started !== null) running.set(plugin.name, started);
  }
  for (const one of running.values()) one.start();
  let closing: Promise<void> | undefined;
  return {
    async discover(plugin, signal) {
      return (await running.get(plugin)?.discover?.(signal)) ?? [];
    },
    close(graceMs) {
      closing ??= Promise.all([...running.values()].map((one) => one.close(graceMs))).then(() => {});
      return closing;
    },
  };
}

/** Null for a plugin without anything to run. */
async function runningOf(plugin: Plugin, host: PluginHost): Promise<Running | null> {
  if (plugin.type === "mock") {
    const lane = mockLane(plugin, host);
    await lane.recover(host.reader);
    return { start: () => lane.resume(), close: () => lane.close(0) };
  }
  if (plugin.type === "stepflow") {
    // Loaded on demand, because it needs an HTTP client.
    const { HttpDispatcher } = await import("../http/dispatcher.ts");
    return new HttpDispatcher(plugin, host);
  }
  if ((plugin.type === "grpc" || plugin.type === "nats") && plugin.launch !== null) {
    return new QueueProcess({ ...plugin, launch: plugin.launch } as QueuePlugin & { launch: Launch }, host, addressOf(plugin, host));
  }
  return null;
}

function checkLaunch(plugin: Plugin, { directory, environment }: PluginHost): void {
  const launch = "launch" in plugin ? plugin.launch : null;
  if (launch !== null) findProgram(launch.command, { plugin: plugin.name, directory, path: launch.env.PATH ?? environment.PATH });
}

/** The local address of a server that listens on all addresses. */
function fromHere(text: string): string {
  const url = new URL(text);
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1";
  if (url.hostname === "[::]") url.hostname = "[::1]";
  return url.origin;
}

function addressOf(plugin: Exclude<Plugin, HttpPlugin>, { url }: PluginHost): string {
  if (url !== null) return parseAddress(url, "The address that the server listens at");
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `The worker of the plugin ${plugin.name} needs a server with a port, to pull from.`, {
    detail: { field: `plugins.${plugin.name}`, expected: "a port, or a plugin without a command" },
  });
}
