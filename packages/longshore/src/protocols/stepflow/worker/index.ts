// The worker half of Stepflow, published as `longshore/stepflow`.

export type { Environment } from "../../../core/environment.ts";
export { telemetryVariables } from "./environment.ts";
export { stepflowFromEnvironment } from "./from-environment.ts";
export type { StepflowGrpcOptions } from "./grpc/options.ts";
export { stepflowGrpc } from "./grpc/worker.ts";
export type { StepflowHttpOptions } from "./http/options.ts";
export { type StepflowHttpTransport, stepflowHttp } from "./http/worker.ts";
export type { StepflowNatsOptions } from "./nats/options.ts";
export { stepflowNats } from "./nats/worker.ts";
export type { QueueOptions } from "./queue-options.ts";
export type { GetRunOptions, RunRequest, RunResult, RunState, RunStatus, StepflowPlace, StepflowTask } from "./task-context.ts";
export { stepflowTask } from "./task-context.ts";
