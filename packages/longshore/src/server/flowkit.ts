// FlowKit's coordinator on this server's engine: with a broker that it is told of, else on the bus in the data file.

import type { Bus } from "../bus/bus.ts";
import { EmbeddedBus } from "../bus/embedded.ts";
import { type IsSensitive, loadDetector } from "../dialect/flowkit/sensitive.ts";
import type { JsonObject } from "../json.ts";
import { type CoordinatorSettings, readCoordinatorConfig } from "../protocol/flowkit/coordinator/config.ts";
import { Coordinator } from "../protocol/flowkit/coordinator/coordinator.ts";
import { directOutbox } from "../protocol/flowkit/coordinator/direct-outbox.ts";
import type { FlowkitOptions } from "./config.ts";
import type { Engine } from "./engine.ts";
import type { Logger } from "./logger.ts";
import { TroubleLog } from "./trouble.ts";

export interface FlowkitConfig {
  readonly settings: CoordinatorSettings;
  readonly isSensitive?: IsSensitive;
}

/** Read before anything is opened: a mistake in it must not leave a server half started. */
export async function readFlowkitConfig({ config, sensitiveDetector }: FlowkitOptions, logger: Logger): Promise<FlowkitConfig> {
  return {
    settings: readCoordinatorConfig(config, process.env, (message) => logger.warn(message)),
    ...(sensitiveDetector === undefined ? {} : { isSensitive: await loadDetector(sensitiveDetector) }),
  };
}

/** FlowKit as a program sees it. */
export interface FlowkitHandle {
  /** Submits a graph; the answer is the `task_id`, which is the id of a run. */
  createTask(task: { graph: unknown; params?: JsonObject }): Promise<string>;
  /** False when there is no such task. */
  cancelTask(taskId: string, reason?: string): Promise<boolean>;
}

export interface Flowkit extends FlowkitHandle {
  readonly coordinator: Coordinator;
  readonly bus: Bus;
  close(): Promise<void>;
}

export async function openFlowkit(
  engine: Engine,
  { settings, isSensitive }: FlowkitConfig,
  options: FlowkitOptions,
  logger: Logger,
): Promise<Flowkit> {
  const trouble = new TroubleLog(logger, engine.clock);
  const bus = new EmbeddedBus(engine.busLog, { clock: engine.clock, trouble });
  const coordinator = new Coordinator({
    engine,
    bus,
    outbox: directOutbox(bus),
    settings,
    log: logger,
    failed: (what, error) => trouble.failing(`FlowKit: ${what}`, error),
    functions: options.functions,
    isSensitive,
  });
  await coordinator.start();
  return {
    coordinator,
    bus,
    createTask: async (task) => (await coordinator.tasks.create(task)).id,
    cancelTask: async (taskId, reason) => (await coordinator.tasks.cancel(taskId, reason)) !== undefined,
    async close() {
      await coordinator.stop();
      await bus.close();
    },
  };
}
