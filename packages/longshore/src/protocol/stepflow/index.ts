// The worker half of Stepflow, published as `longshore/stepflow`.

export type { GetRunOptions, RunRequest, RunResult, RunState, RunStatus, StepflowPlace, StepflowTask } from "./task-context.ts";
export { stepflowTask } from "./task-context.ts";
