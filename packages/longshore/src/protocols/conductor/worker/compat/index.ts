// The worker API of the official JavaScript SDK, published as `longshore/conductor/compat`. A program written for that SDK works after its
// import is changed. docs/guides/conductor-drop-in.md describes the differences.

export type { JsonSchema } from "../../../../core/schema/json-schema.ts";
export type { ResultStatus, RetryLogic, TaskStatus, TimeoutPolicy } from "../../wire/shapes.ts";
export {
  type Client,
  type ConductorClient,
  createConductorClient,
  createConductorClient as orkesConductorClient,
  type OrkesApiConfig,
  OrkesClients,
} from "./client.ts";
export {
  type MethodContext,
  type SimpleTaskDef,
  type StepOptions,
  type WorkerDecorator,
  type WorkerFunction,
  worker,
} from "./decorator.ts";
export {
  EventDispatcher,
  type PollCompleted,
  type PollFailure,
  type PollStarted,
  type TaskExecutionCompleted,
  type TaskExecutionFailure,
  type TaskExecutionStarted,
  type TaskPaused,
  type TaskRunnerEvent,
  type TaskRunnerEventsListener,
  type TaskRunnerEventType,
  type TaskUpdateCompleted,
  type TaskUpdateFailure,
} from "./events.ts";
export { type ConductorLogger, type ConductorLogLevel, DefaultLogger, noopLogger } from "./logger.ts";
export {
  CanonicalMetricsCollector,
  CanonicalMetricsCollector as MetricsCollector,
  createMetricsCollector,
  type MetricsCollectorConfig,
  type MetricsCollectorInterface,
  MetricsServer,
} from "./metrics.ts";
export { NonRetryableException } from "./non-retryable.ts";
export { clearWorkerRegistry, getRegisteredWorker, getRegisteredWorkers, getWorkerCount } from "./registry.ts";
export {
  type FieldDecorator,
  type FieldDescriptor,
  generateSchemaFromClass,
  type JsonSchemaOutput,
  type JsonSchemaType,
  jsonSchema,
  type SchemaFieldOptions,
  schemaField,
} from "./schema.ts";
export { getTaskContext, TaskContext } from "./task-context.ts";
export { type HealthMonitorConfig, TaskHandler, type TaskHandlerConfig, type WorkerHealth } from "./task-handler.ts";
export { TaskManager, type TaskManagerConfig, type TaskManagerOptions } from "./task-manager.ts";
export {
  type ConductorWorker,
  isTaskInProgress,
  type RegisteredWorker,
  type Task,
  type TaskDef,
  type TaskExecLog,
  type TaskInProgressResult,
  type TaskResult,
  type TaskResultStatus,
  TaskResultStatusEnum,
  type WorkerMethod,
  type WorkerOptions,
} from "./types.ts";
