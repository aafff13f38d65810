// The server side of Longshore.

export { type CallOptions, type RunResult, type ServeOptions, type Server, serve } from "./server.ts";
