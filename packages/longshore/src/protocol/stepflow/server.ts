// Stepflow's server half, put together: the queues that a configuration names, the services that workers call, and what carries tasks to
// workers that do not.

import type { Clock } from "../../clock.ts";
import type { GrpcMethod } from "../../grpc/service.ts";
import type { Runs } from "../../run/runs.ts";
import { type Addresses, addressesOf, parseAddress } from "./address.ts";
import type { BlobLibrary } from "./blob-library.ts";
import type { NatsPlugin, StepflowConfig } from "./config/config.ts";
import { queuesOf } from "./config/queues.ts";
import { blobMethods } from "./grpc/blobs.ts";
import { orchestratorMethods } from "./grpc/orchestrator.ts";
import { tasksMethods } from "./grpc/tasks.ts";
import { NatsDispatcher } from "./nats/dispatcher.ts";
import type { TaskQueue } from "./queue/queue.ts";
import { type QueueEngine, Queues } from "./queue/queues.ts";
import type { Trouble } from "./queue/trouble.ts";

export interface StepflowServerOptions {
  readonly engine: QueueEngine & { readonly clock: Clock; readonly runs: Pick<Runs, "run"> };
  readonly config: StepflowConfig;
  readonly blobs: BlobLibrary;
  /** Under which address workers are told to reach this server, when it is not where it listens. */
  readonly orchestratorUrl?: string;
  readonly trouble: Trouble;
}

export class StepflowServer {
  /** Every method that it serves. */
  readonly methods: readonly GrpcMethod[];
  readonly #options: StepflowServerOptions;
  readonly #queues: Queues;
  readonly #addresses: Addresses;
  #dispatchers: readonly NatsDispatcher[] = [];
  #listensAt = "";

  /** @throws LongshoreError LONGSHORE_BAD_CONFIG for an address that is none. */
  constructor(options: StepflowServerOptions) {
    const { engine, config, blobs, orchestratorUrl } = options;
    this.#options = options;
    this.#queues = new Queues(engine, queuesOf(config));
    const told = orchestratorUrl === undefined ? undefined : parseAddress(orchestratorUrl, "The orchestrator's URL");
    this.#addresses = addressesOf(told, () => this.#listensAt);
    this.methods = [
      ...tasksMethods({ ...engine, queues: this.#queues, addresses: this.#addresses }),
      ...orchestratorMethods({ reports: this.#queues.reports }),
      ...(config.blobApi.enabled ? blobMethods(blobs) : []),
    ];
  }

  /** The port is open: `url` is where. Rejects when something that the configuration asks for is not installed. */
  async start(url: string): Promise<void> {
    this.#listensAt = parseAddress(url, "The address that the server listens at");
    const { engine, config, trouble } = this.#options;
    const queues = queuesOf(config);
    const plugins = [...config.plugins.values()].filter((plugin): plugin is NatsPlugin => plugin.type === "nats");
    this.#dispatchers = plugins.map((plugin) => {
      const names = new Set(queues.filter((queue) => queue.plugin === plugin).map(({ name }) => name));
      const streams = [...names].map((name) => this.#queues.find(name)?.queue as TaskQueue);
      return new NatsDispatcher({ clock: engine.clock, plugin, queues: streams, addresses: this.#addresses, trouble });
    });
    await Promise.all(this.#dispatchers.map((dispatcher) => dispatcher.start()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#dispatchers.map((dispatcher) => dispatcher.stop()));
    this.#queues.close();
  }
}
