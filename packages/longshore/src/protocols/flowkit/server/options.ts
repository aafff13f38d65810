// The options of `serve()` for FlowKit.

import type { KafkaBusOptions } from "../../../bus/kafka.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import type { SensitiveDetector } from "../dialect/sensitive-values.ts";
import type { CoordinatorConfig } from "./coordinator/config.ts";
import type { CoordinatorFunction } from "./coordinator/functions.ts";

export type FlowkitKafka = Pick<
  KafkaBusOptions,
  "clientId" | "ssl" | "sasl" | "partitions" | "replicas" | "sessionMs" | "lookMs" | "patienceMs"
>;

export interface FlowkitOptions {
  /** Kafka brokers, such as `kafka:9092`, as a list or separated by commas. Default: the bus in the data file. */
  brokers?: string | readonly string[];
  /**
   * A MongoDB that FlowKit workers share, such as `mongodb://db/flowkit`. The server writes tasks there, and reads the results that workers
   * store there. Default: workers store their artifacts on this server.
   */
  mongo?: string;
  /** Further Kafka options: `ssl`, `sasl`, and how topics are created. */
  kafka?: FlowkitKafka;
  /** A file with the reference's `CoordinatorConfig` as JSON, or its settings. */
  config?: string | CoordinatorConfig;
  /** Functions for nodes of the type `coordinator_fn`, by name. */
  functions?: { readonly [name: string]: CoordinatorFunction };
  /** Detects secrets among variables. */
  sensitiveDetector?: SensitiveDetector;
}

/** The field of `ServeOptions` for FlowKit. */
export interface FlowkitServing {
  /** How FlowKit workers connect and are coordinated. A server without a port coordinates them only with this option. */
  flowkit?: FlowkitOptions;
}

/** FlowKit for the program that runs the server. */
export interface FlowkitHandle {
  /** Submits a graph; returns the `task_id`, which is the id of a run. */
  createTask(task: { graph: unknown; params?: JsonObject }): Promise<string>;
  /** False when there is no such task. */
  cancelTask(taskId: string, reason?: string): Promise<boolean>;
}

/** The field of `Server` for FlowKit. */
export interface FlowkitSide {
  /** FlowKit's graphs. Null on a server without a port, unless it is configured to coordinate FlowKit workers. */
  readonly flowkit: FlowkitHandle | null;
}

/** The keys of a configuration file for FlowKit. */
export interface FlowkitSettings {
  /** Kafka brokers for FlowKit workers, separated by commas. Default: the bus of this server. */
  flowkitBrokers?: string;
  /** The MongoDB that FlowKit workers share. Default: the store of this server. */
  flowkitMongo?: string;
  /** A file with the address of that MongoDB. */
  flowkitMongoFile?: string;
  /** A JSON file with the settings of the FlowKit coordinator. */
  flowkitConfig?: string;
}
