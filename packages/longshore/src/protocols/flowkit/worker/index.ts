// The worker half of FlowKit, published as `longshore/flowkit`: `streamTask` and `flowkit` for new workers, and the reference's classes for
// existing handlers.

export type { Bus, BusConsumer, BusRecord, Outgoing, Subscription } from "../../../core/bus/bus.ts";
export type { ArgDefaults, Checked } from "../wire/adapter-args.ts";
export type { InputAdapter, Upstream } from "../wire/adapters/adapter.ts";
export {
  type ArtifactStore,
  type Attempt,
  type PartialArtifact,
  type PartRef,
  type ReadOptions,
  UpstreamFailed,
  type UpstreamPart,
} from "../wire/artifacts/artifacts.ts";
export {
  Batch,
  type BatchFields,
  BatchResult,
  type BatchResultFields,
  FinalizeResult,
  type FinalizeResultFields,
  type ReadBatch,
  type ResultOf,
} from "../wire/batch.ts";
export type { Classified } from "./classify.ts";
export { Worker, type WorkerInit } from "./compat.ts";
export { type Batches, type BatchGenerator, type Loaded, RoleHandler, type RunInfo, type StreamHandler } from "./handler.ts";
export type { LogSink, WorkerLogEntry } from "./log.ts";
export type { FlowkitOptions, KafkaConnection, WorkerOptions } from "./options.ts";
export type { RunArtifacts, RunClock, RunContext } from "./run-context.ts";
export { type StreamTask, type StreamTaskOptions, streamTask } from "./stream-task.ts";
export { flowkit } from "./worker.ts";
export { WorkerConfig, type WorkerConfigFields, type WorkerConfigInit } from "./worker-config.ts";
