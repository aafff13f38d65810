// The queues that a configuration names: those of its plugins, and those that single routes lead to instead. They are there from the
// start, so that a worker which comes before the first task finds its queue.

import type { GrpcPlugin, NatsPlugin, StepflowConfig } from "./config.ts";
import type { RouteRule } from "./route.ts";

export type QueuePlugin = GrpcPlugin | NatsPlugin;

/** One way into a queue. Several plugins and routes may lead into one queue, each with timeouts of its own. */
export interface Queue {
  /** For NATS the name of the stream. */
  readonly name: string;
  readonly backend: "grpc" | "nats";
  readonly plugin: QueuePlugin;
  /** A route leads to it and to workers of other protocols alike, so that either may have a component. */
  readonly shared: boolean;
}

/** Each queue of each plugin once. */
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

/** Whatever comes, and as it comes: nothing in it would keep a component from one plugin and give it to another. */
function takesAll({ conditions, allow, deny, component }: RouteRule): boolean {
  return conditions.length === 0 && allow === null && deny.length === 0 && component === null;
}

/** Where a rule's tasks go; null for a NATS plugin that leaves it to its routes. */
export function queueOf(plugin: QueuePlugin, params: RouteRule["params"]): string | null {
  const said = plugin.type === "nats" ? (params.stream ?? params.queueName) : params.queueName;
  if (typeof said === "string") return said;
  return plugin.type === "nats" ? plugin.stream : plugin.queue;
}

/** The lane of a queue's tasks. */
export function queueLane(queue: string): string {
  return `stepflow:${queue}`;
}

/** The lane of the tasks of a plugin that is called over HTTP, or answers in this process. */
export function pluginLane(plugin: { readonly name: string; readonly type: "stepflow" | "mock" }): string {
  return `stepflow-${plugin.type === "stepflow" ? "http" : plugin.type}:${plugin.name}`;
}

/** Where built-in components wait to be carried out. */
export const builtinLane = "stepflow-builtin";
