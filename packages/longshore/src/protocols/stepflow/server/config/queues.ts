// The queues that a configuration names: those of its plugins and those of single routes. They exist from the start: a worker may connect
// before the first task.

import type { GrpcPlugin, NatsPlugin, StepflowConfig } from "./config.ts";
import type { RouteRule } from "./route.ts";

export type QueuePlugin = GrpcPlugin | NatsPlugin;

/** One use of a queue. Several plugins and routes may use the same queue, each with its own timeouts. */
export interface Queue {
  /** For NATS, the name of the stream. */
  readonly name: string;
  readonly backend: "grpc" | "nats";
  readonly plugin: QueuePlugin;
  /** A route leads both to this queue and to workers of other protocols, so that either may have a component. */
  readonly shared: boolean;
}

/** The list has each queue of each plugin once. */
export function queuesOf(config: StepflowConfig): Queue[] {
  const queues = new Map<string, Queue>();
  const add = (plugin: QueuePlugin, name: string | null, shared = false) => {
    if (name === null) return;
    const key = `${plugin.name}\0${name}`;
    queues.set(key, { name, backend: plugin.type, plugin, shared: shared || queues.get(key)?.shared === true });
  };
  for (const plugin of config.plugins.values()) {
    if (plugin.type === "grpc" || plugin.type === "nats") add(plugin, queueOf(plugin, {}));
  }
  for (const { rules } of config.routes) {
    const isOpen = rules.some((rule) => config.plugins.get(rule.plugin)?.type === "longshore" && takesAll(rule));
    for (const rule of rules) {
      const plugin = config.plugins.get(rule.plugin);
      if (plugin?.type === "grpc" || plugin?.type === "nats") add(plugin, queueOf(plugin, rule.params), isOpen && takesAll(rule));
    }
  }
  return [...queues.values()];
}

/** Returns whether the rule takes every component unchanged. Such a rule never decides between plugins. */
function takesAll({ conditions, allow, deny, component }: RouteRule): boolean {
  return conditions.length === 0 && allow === null && deny.length === 0 && component === null;
}

/** The queue of a rule's tasks. Null when neither the rule nor its NATS plugin names one. */
export function queueOf(plugin: QueuePlugin, params: RouteRule["params"]): string | null {
  const said = plugin.type === "nats" ? (params.stream ?? params.queueName) : params.queueName;
  if (typeof said === "string") return said;
  return plugin.type === "nats" ? plugin.stream : plugin.queue;
}

/** The lane of a queue's tasks. */
export function queueLane(queue: string): string {
  return `stepflow:${queue}`;
}

/** The lane of a plugin that is called over HTTP, or that runs in this process. */
export function pluginLane(plugin: { readonly name: string; readonly type: "stepflow" | "mock" }): string {
  return `stepflow-${plugin.type === "stepflow" ? "http" : plugin.type}:${plugin.name}`;
}

/** The lane of built-in components. */
export const builtinLane = "stepflow-builtin";
