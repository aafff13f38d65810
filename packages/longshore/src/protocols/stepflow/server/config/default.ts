// The configuration of a server without a configuration file. A worker that connects to the queue `python` or `default` gets the tasks of
// that queue. Workers of other protocols serve the remaining components.

import { blobApiDefault, type GrpcPlugin, noTimeouts, type Plugin, retryDefault, type StepflowConfig } from "./config.ts";
import { type Route, routePattern } from "./route.ts";

export function defaultConfig(): StepflowConfig {
  const plugins: Plugin[] = [
    { name: "builtin", type: "builtin" },
    grpc("python"),
    grpc("default"),
    { name: "longshore", type: "longshore", timeouts: noTimeouts },
  ];
  return {
    file: null,
    directory: process.cwd(),
    plugins: new Map(plugins.map((plugin) => [plugin.name, plugin])),
    routes: [route("/builtin", "builtin"), route("/python", "python"), route("/", "default", "longshore")],
    retry: retryDefault,
    blobApi: blobApiDefault,
    typeCheck: false,
  };
}

function grpc(queue: string): GrpcPlugin {
  return { name: queue, type: "grpc", queue, launch: null, timeouts: noTimeouts };
}

function route(prefix: string, ...plugins: string[]): Route {
  return {
    pattern: routePattern(prefix),
    rules: plugins.map((plugin) => ({ plugin, conditions: [], allow: null, deny: [], component: null, params: {} })),
  };
}
