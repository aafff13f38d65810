// The worker half of Stepflow, published as `longshore/stepflow`.

export type { StepflowHttpOptions } from "./http/options.ts";
export { type StepflowHttpTransport, stepflowHttp } from "./http/worker.ts";

export type { GetRunOptions, RunRequest, RunResult, RunState, RunStatus, StepflowPlace, StepflowTask } from "./task-context.ts";
export { stepflowTask } from "./task-context.ts";
