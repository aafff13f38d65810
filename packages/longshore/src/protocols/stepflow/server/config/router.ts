// Finds the lane of a step's task from its component path. Pure: the same path, input and registrations give the same result.
//
// Matching routes are tried best first, and the rules of a route in order: allow and deny, then conditions. When several rules of a route
// would take the step, the registrations of their workers decide. The router chooses the first plugin that has the component; else the
// first that takes any component; else the first whose components are unknown. Else it chooses the first plugin, whose worker then reports
// that it has no such component.

import { isDeepStrictEqual } from "node:util";
import type { Json } from "../../../../core/json/json.ts";
import type { ReservedLanes } from "../../../../engine/board/reserved-lanes.ts";
import type { DocumentKey } from "../../../../engine/run/documents.ts";
import type { Timeouts } from "../../../../engine/run/plan.ts";
import { follow } from "../../dialect/path.ts";
import type { ComponentTask, Documents, Routed, Router, Unrouted } from "../../dialect/router.ts";
import { retriesUnlimited } from "../../dialect/router.ts";
import { builtinPaths } from "./builtin-paths.ts";
import type { Plugin, PluginTimeouts, StepflowConfig, TransportRetry } from "./config.ts";
import { builtinLane, pluginLane, queueLane, queueOf } from "./queues.ts";
import { componentsIn, componentsKind, findComponent } from "./registered-components.ts";
import { componentOf, inOrder, type Route, type RouteRule, withSlash } from "./route.ts";

/** Lease duration of queue workers without a heartbeat: the reference's crash window. */
export const queueHoldMs = 5_000;

/** A rule that would take the step. */
interface Candidate {
  readonly plugin: Plugin;
  readonly rule: RouteRule;
  readonly component: string;
}

/** What is known about a plugin and a component: the plugin has it, does not have it, takes any component, or this is unknown. */
type Knowledge = "has" | "lacks" | "takes-any" | "unknown";

interface RouterDeps {
  readonly config: StepflowConfig;
  readonly reserved: ReservedLanes;
}

export function makeRouter(config: StepflowConfig, reserved: ReservedLanes): Router {
  const routes = inOrder(config.routes);
  return {
    route(component, input, documents) {
      const path = withSlash(component);
      for (const route of routes) {
        const candidates = candidatesOf(route, path, input, { config, reserved });
        if ("failed" in candidates) return candidates;
        if (candidates.length > 0) return pick(candidates, input, documents, config.retry);
      }
      return unrouted(`no route leads to '${path}'`);
    },
  };
}

function candidatesOf(route: Route, path: string, input: Json, { config, reserved }: RouterDeps): Candidate[] | Unrouted {
  const captures = route.pattern.match(path);
  if (captures === undefined) return [];
  const candidates: Candidate[] = [];
  for (const rule of route.rules) {
    const component = componentOf(rule, route.pattern, captures);
    if (component === null || rule.deny.includes(component)) continue;
    if (rule.allow !== null && !rule.allow.includes(component)) continue;
    const met = conditionsMet(rule, input);
    if (typeof met === "string") return unrouted(`${met}, which a condition of '${route.pattern.text}' reads`);
    const plugin = config.plugins.get(rule.plugin);
    if (met && plugin !== undefined && !isReserved(plugin, component, reserved)) candidates.push({ plugin, rule, component });
  }
  return candidates;
}

/** True when the component's name is a reserved lane; workers of other protocols take components from lanes of the same name. */
function isReserved(plugin: Plugin, component: string, reserved: ReservedLanes): boolean {
  return plugin.type === "longshore" && reserved.has(component.slice(1));
}

/** Returns a text with the path when the input does not have it. As in the reference, this is an error and not a false condition. */
function conditionsMet(rule: RouteRule, input: Json): boolean | string {
  for (const { path, steps, value } of rule.conditions) {
    const found = follow(input, steps);
    if ("missing" in found) return `the input has no '${path}'`;
    if (!isDeepStrictEqual(found.value, value)) return false;
  }
  return true;
}

function pick(
  candidates: readonly Candidate[],
  input: Json,
  documents: Documents,
  retry: TransportRetry,
): Routed | { documents: DocumentKey[] } {
  const [first] = candidates as [Candidate, ...Candidate[]];
  if (candidates.length === 1) return routed(first, input, retry);
  const lanes = candidates.flatMap(({ plugin, rule }) => registeringLane(plugin, rule) ?? []);
  const missing = lanes.filter((lane) => documents(componentsKind, lane) === undefined);
  if (missing.length > 0) return { documents: missing.map((name) => ({ kind: componentsKind, name })) };
  const known = candidates.map((candidate) => ({ candidate, knows: knowledgeOf(candidate, documents) }));
  const best = (wanted: Knowledge) => known.find(({ knows }) => knows === wanted)?.candidate;
  return routed(best("has") ?? best("takes-any") ?? best("unknown") ?? first, input, retry);
}

function knowledgeOf({ plugin, rule, component }: Candidate, documents: Documents): Knowledge {
  if (plugin.type === "longshore") return "takes-any";
  if (plugin.type === "builtin") return builtinPaths.includes(component) ? "has" : "lacks";
  if (plugin.type === "mock") return plugin.components.has(component) ? "has" : "lacks";
  const lane = registeringLane(plugin, rule);
  const body = lane === null ? null : documents(componentsKind, lane);
  if (body === null || body === undefined) return "unknown";
  return findComponent(componentsIn(body), component) === null ? "lacks" : "has";
}

/** The name under which the workers of a plugin register their components; null when they do not register. */
function registeringLane(plugin: Plugin, rule: RouteRule): string | null {
  return plugin.type === "grpc" || plugin.type === "nats" || plugin.type === "stepflow" ? laneOf(plugin, rule, "") : null;
}

function laneOf(plugin: Plugin, rule: RouteRule, component: string): string {
  if (plugin.type === "builtin") return builtinLane;
  if (plugin.type === "longshore") return component.slice(1);
  if (plugin.type === "grpc" || plugin.type === "nats") return queueLane(queueOf(plugin, rule.params) ?? plugin.name);
  return pluginLane(plugin);
}

function routed({ plugin, rule, component }: Candidate, input: Json, retry: TransportRetry): Routed {
  // Built-in components run again after each restart, without a limit. A mock may simulate an unreachable plugin, which must end.
  const retries = plugin.type === "builtin" ? retriesUnlimited : retry.max;
  const task = { component, input } satisfies ComponentTask;
  return {
    plugin: plugin.name,
    remainder: component,
    params: rule.params,
    lanes: [{ name: laneOf(plugin, rule, component), labels: [] }],
    given: plugin.type === "longshore" ? input : task,
    transport: { retries, backoff: retry.backoff },
    ...("timeouts" in plugin ? { timeouts: timeoutsOf(plugin.timeouts) } : {}),
    ...(plugin.type === "grpc" || plugin.type === "nats" ? { holdMs: queueHoldMs } : {}),
  };
}

function timeoutsOf({ queueMs, executionMs }: PluginTimeouts): Timeouts {
  return { claimMs: queueMs, ...(executionMs === null ? {} : { endMs: executionMs }) };
}

/** The reference's text comes first, so that users can search for it. */
function unrouted(why: string): Unrouted {
  return { failed: "ORCHESTRATOR_ERROR", message: `error routing component: ${why}` };
}
