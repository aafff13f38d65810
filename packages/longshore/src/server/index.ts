// The server side of Longshore.

export type { RetentionPolicy, RetentionSettings } from "../engine/run/retention.ts";
export type { HttpLimits } from "../net/listener/limits.ts";
export { dataDefault, portDefault, type ServeOptions } from "./config.ts";
export type { CallOptions, RunResult, SentSignal, Server } from "./handle.ts";
export { serve } from "./server.ts";
export type { WaitingNews } from "./waiting-tasks.ts";
export type { LoadedWorkflows } from "./workflows.ts";
