// Assembles Stepflow's server half: the API, the queues with the services that their workers call, the workers that this server calls or
// starts, and the components that it runs itself.

import { randomUUID } from "node:crypto";
import { calledWorker, everyone } from "../../../core/actions.ts";
import type { FailureListener } from "../../../core/failure-listener.ts";
import type { GrpcMethod } from "../../../net/grpc/service.ts";
import type { RouteGroup } from "../../../net/http/http.ts";
import { type Addresses, addressesOf, isOnLoopback, parseAddress } from "./address.ts";
import { type ApiEngine, openStepflowApi, type StepflowApi } from "./api/api.ts";
import { componentSource } from "./component-source.ts";
import { routeFacts } from "./config/component-facts.ts";
import type { NatsPlugin, StepflowConfig } from "./config/config.ts";
import { queuesOf } from "./config/queues.ts";
import type { FlowAccess } from "./flow-access.ts";
import { blobMethods } from "./grpc/blobs.ts";
import { orchestratorMethods, workerRunMethods } from "./grpc/orchestrator.ts";
import { tasksMethods } from "./grpc/tasks.ts";
import { NatsDispatcher } from "./nats/dispatcher.ts";
import type { PluginLog } from "./plugins/log.ts";
import { type Plugins, startPlugins } from "./plugins/plugins.ts";
import type { TaskQueue } from "./queue/queue.ts";
import { type QueueEngine, Queues } from "./queue/queues.ts";

/** The parts of the engine that it uses. */
export interface StepflowEngine extends QueueEngine, ApiEngine {
  readonly runs: ApiEngine["runs"];
  readonly workers: ApiEngine["workers"];
  listen: ApiEngine["listen"];
}

export interface StepflowServerOptions {
  readonly engine: StepflowEngine;
  readonly config: StepflowConfig;
  readonly version: string;
  /** The address under which workers reach this server, when it differs from where it listens. */
  readonly orchestratorUrl?: string;
  /** Whether callers must send a token. */
  readonly asksToken: boolean;
  readonly environment: NodeJS.ProcessEnv;
  /** What flows may read from this machine. */
  readonly access: FlowAccess;
  readonly trouble: FailureListener;
  readonly log: PluginLog;
}

export class StepflowServer {
  readonly routes: RouteGroup;
  /** All gRPC methods that it serves. */
  readonly methods: readonly GrpcMethod[];
  readonly #options: StepflowServerOptions;
  readonly #api: StepflowApi;
  readonly #queues: Queues;
  readonly #addresses: Addresses;
  #dispatchers: readonly NatsDispatcher[] = [];
  #plugins: Plugins | null = null;
  #listensAt = "";

  /** @throws LongshoreError LONGSHORE_BAD_CONFIG for an invalid address. */
  constructor(options: StepflowServerOptions) {
    const { engine, config, orchestratorUrl } = options;
    const { clock, workers, runs } = engine;
    this.#options = options;
    this.#api = this.#openApi();
    this.#queues = new Queues(engine, queuesOf(config));
    const configured = orchestratorUrl === undefined ? undefined : parseAddress(orchestratorUrl, "The orchestrator's URL");
    this.#addresses = addressesOf(configured, () => this.#listensAt);
    this.routes = this.#api.rest;
    this.methods = [
      ...this.#api.grpc,
      ...tasksMethods({ clock, workers, runs, queues: this.#queues, addresses: this.#addresses }),
      ...orchestratorMethods({ reports: this.#queues.reports }),
      ...workerRunMethods(this.#api.workerRuns),
      ...(config.blobApi.enabled ? blobMethods(this.#api.services.blobs) : []),
    ];
  }

  /** Call it when the port is open at `url`. Rejects when a package that the configuration needs is not installed. */
  async start(url: string): Promise<void> {
    this.#listensAt = parseAddress(url, "The address that the server listens at");
    await this.#api.start();
    await this.#startDispatchers();
    await this.#startPlugins(url);
  }

  /** Lets work in progress finish for at most `graceMs`. Work of this server itself continues at its next start. */
  async stop(graceMs?: number): Promise<void> {
    await this.#plugins?.close(graceMs);
    await Promise.all([...this.#dispatchers.map((dispatcher) => dispatcher.stop()), this.#api.close()]);
    this.#queues.close();
  }

  #openApi(): StepflowApi {
    const { engine, access, config, version, environment, asksToken, trouble } = this.#options;
    const { clock, board, workers, documents } = engine;
    return openStepflowApi({
      engine,
      access,
      version,
      called: asksToken ? calledWorker : everyone,
      holds: (caller, rootRunId) => this.#queues.holders.holds(caller, rootRunId),
      servesBlobs: config.blobApi.enabled,
      typeCheck: config.typeCheck,
      environment,
      routes: (builtins) => routeFacts(config, builtins),
      components: (builtins) =>
        componentSource({
          ...{ clock, documents, workers, reserved: board.reserved },
          config,
          builtins,
          discover: async (plugin, signal) => (await this.#plugins?.discover(plugin, signal)) ?? [],
        }),
      failed: (what, error) => trouble.failing(`a ${what} of built-in components`, error),
    });
  }

  async #startDispatchers(): Promise<void> {
    const { engine, config, trouble, log } = this.#options;
    const queues = queuesOf(config);
    const plugins = [...config.plugins.values()].filter((plugin): plugin is NatsPlugin => plugin.type === "nats");
    this.#dispatchers = plugins.map((plugin) => {
      const names = new Set(queues.filter((queue) => queue.plugin === plugin).map(({ name }) => name));
      const streams = [...names].map((name) => this.#queues.find(name)?.queue as TaskQueue);
      return new NatsDispatcher({ clock: engine.clock, plugin, queues: streams, addresses: this.#addresses, trouble });
    });
    const address = this.#addresses.forCaller();
    for (const { name, url } of plugins) {
      if (!isOnLoopback(address) || isOnLoopback(url)) continue;
      const message = `Workers of the plugin ${name} report to ${address}, which only this machine can reach`;
      log.warn(`${message}: set STEPFLOW_ORCHESTRATOR_URL`);
    }
    await Promise.all(this.#dispatchers.map((dispatcher) => dispatcher.start()));
  }

  async #startPlugins(url: string): Promise<void> {
    const { engine, config, asksToken, environment, log } = this.#options;
    const { board, workers, documents, reader, clock, listen } = engine;
    const { workerRuns, calls } = this.#api;
    // Workers that are called have no token. When the blob API requires a token, they do not get its address, and store blobs over their
    // open calls.
    const blobApi = asksToken && config.blobApi.url === null ? { ...config.blobApi, enabled: false } : config.blobApi;
    this.#plugins = await startPlugins(
      { ...config, blobApi },
      {
        ...{ board, workers, documents, reader, clock, listen },
        log,
        makeId: () => randomUUID(),
        observability: (task) => workerRuns.observability(task),
        calls,
        url,
        environment,
      },
    );
  }
}
