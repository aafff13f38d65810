// The worker half of Conductor, published as `longshore/conductor`.

export type { PolledTask, ResultStatus, RetryLogic, TaskDef, TaskExecLog, TimeoutPolicy } from "../wire/shapes.ts";
export type { WorkerOptions } from "./config.ts";
export type { ConductorOptions, TlsOptions } from "./options.ts";
export { inProgress, type ResultObject, taskResult } from "./result.ts";
export { type ConductorTask, conductorTask } from "./task-context.ts";
export { type ConductorTransport, conductor } from "./worker.ts";
