// What `serve()` takes for FlowKit.

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
  /** Brokers of Kafka, such as `kafka:9092`, in a list or separated by commas. Without them the bus is in the data file. */
  brokers?: string | readonly string[];
  /**
   * A MongoDB that workers of FlowKit share, such as `mongodb://db/flowkit`: what they read there of tasks is kept there, and what they keep
   * there counts. Without it, workers keep their artifacts here.
   */
  mongo?: string;
  /** How to reach them: `ssl`, `sasl`, and how topics are created. */
  kafka?: FlowkitKafka;
  /** A file with the reference's `CoordinatorConfig` as JSON, or its settings. */
  config?: string | CoordinatorConfig;
  /** Functions for nodes of the type `coordinator_fn`, by the name that graphs call them. */
  functions?: { readonly [name: string]: CoordinatorFunction };
  /** Recognises secrets among variables. */
  sensitiveDetector?: SensitiveDetector;
}

/** The field of `ServeOptions` that is FlowKit's. */
export interface FlowkitServing {
  /** How workers of FlowKit connect, and how they are coordinated. A server without a port coordinates them only when this is given. */
  flowkit?: FlowkitOptions;
}

/** FlowKit for the program that runs the server. */
export interface FlowkitHandle {
  /** Submits a graph; returns the `task_id`, which is the id of a run. */
  createTask(task: { graph: unknown; params?: JsonObject }): Promise<string>;
  /** False when there is no such task. */
  cancelTask(taskId: string, reason?: string): Promise<boolean>;
}

/** The field of `Server` that is FlowKit's. */
export interface FlowkitSide {
  /** Graphs of FlowKit; null on a server that has no port and is not configured to coordinate its workers. */
  readonly flowkit: FlowkitHandle | null;
}
