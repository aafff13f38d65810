// Parses the routes of a configuration file, in both notations.

import type { Environment } from "../../../../core/environment.ts";
import { listOf, mapOf, required, textOf } from "../../../../core/file-fields.ts";
import type { Place } from "../../../../core/file-place.ts";
import type { Json } from "../../../../core/json/json.ts";
import { withoutEndSlashes } from "../../../../core/text.ts";
import { parsePath } from "../../dialect/path.ts";
import type { Plugin } from "./config.ts";
import { queueName, streamName, type UnservedPlugin } from "./parse-plugin.ts";
import { type Route, type RouteCondition, type RoutePattern, type RouteRule, routePattern, withSlash } from "./route.ts";

export type Plugins = ReadonlyMap<string, Plugin | UnservedPlugin>;

/** `component_allow` and `component_deny` are the notation of the first releases. A deny list must never be ignored. */
const ownKeys = new Set([
  "plugin",
  "conditions",
  "componentAllow",
  "component_allow",
  "componentDeny",
  "component_deny",
  "component",
  "params",
]);

export function parseRoutes(place: Place, plugins: Plugins, environment: Environment): Route[] {
  const routes: Route[] = [];
  const seen = new Map<string, string>();
  for (const { key, at, value } of mapOf(place, "a map from paths to rules").entries()) {
    const pattern = patternOf(key, at);
    // `/python` and `/python/{*component}` mean the same.
    const meaning = withoutEndSlashes(key.replace(/\/\{\*component\}$/, ""));
    const other = seen.get(meaning);
    if (other !== undefined) throw at.refuse(`'${key}' and '${other}' are the same path.`, "each path once");
    seen.set(meaning, key);
    const rules = listOf(value, "a list of rules, each with a plugin").map((rule) => ruleOf(rule, plugins, environment));
    if (rules.length === 0) value.warn(`The route '${key}' has no rules, so nothing takes it.`);
    routes.push({ pattern, rules });
  }
  return routes;
}

function patternOf(key: string, at: Place): RoutePattern {
  try {
    return routePattern(key);
  } catch {
    // The message of `routePattern` is about tasks. This message names the place in the file instead.
    throw at.refuse(
      `'${key}' is not a path.`,
      "a prefix such as /python, or a pattern such as /python/{*component}: each name once, {*name} last",
    );
  }
}

function ruleOf(place: Place, plugins: Plugins, environment: Environment): RouteRule {
  const given = new Map(
    mapOf(place, "a map with a plugin")
      .entries()
      .map(({ key, value }) => [key, value]),
  );
  const named = required(place, given, "plugin");
  const name = textOf(named, "the name of a plugin");
  const plugin = plugins.get(name);
  if (plugin === undefined) throw named.refuse(`There is no plugin '${name}'.`, `one of ${[...plugins.keys()].join(", ")}`);
  if (plugin.type === "unserved")
    throw named.refuse(`The plugin ${name} cannot be used: ${plugin.why}.`, "another plugin, or no route to it");
  const component = given.get("component");
  const deny = given.get("componentDeny") ?? given.get("component_deny");
  const allow = given.get("componentAllow") ?? given.get("component_allow");
  return {
    plugin: name,
    conditions: conditionsOf(given.get("conditions")),
    allow: allow === undefined || allow.kind === "null" ? null : componentsOf(allow),
    deny: deny === undefined || deny.kind === "null" ? [] : componentsOf(deny),
    component: component === undefined || component.kind === "null" ? null : textOf(component, "the name of a component"),
    params: paramsOf(given, plugin, place, environment),
  };
}

function conditionsOf(place: Place | undefined): RouteCondition[] {
  if (place === undefined || place.kind === "null") return [];
  return listOf(place, "a list of conditions, each with path and value").map((item) => {
    const given = new Map(
      mapOf(item, "a map with path and value")
        .entries()
        .map(({ key, value }) => [key, value]),
    );
    const at = required(item, given, "path");
    const path = textOf(at, "a path into the input, such as $.model");
    const parsed = parsePath(path);
    if ("fault" in parsed)
      throw at.refuse(`'${path}' is not a path: ${parsed.fault}.`, "a path into the input, such as $.model or $.items[0]['a b']");
    return { path, steps: parsed.path, value: required(item, given, "value").json() };
  });
}

function componentsOf(place: Place): string[] {
  return listOf(place, "a list of components").map((item) => withSlash(textOf(item, "the name of a component")));
}

/** Parameters are beside `plugin`, as 0.13 reads them, or below `params`, as the documents write them. */
function paramsOf(given: ReadonlyMap<string, Place>, plugin: Plugin, rule: Place, environment: Environment): RouteRule["params"] {
  const nested = given.get("params");
  const below = nested === undefined || nested.kind === "null" ? [] : mapOf(nested, "a map of parameters").entries();
  const places = new Map([
    ...below.map(({ key, value }): [string, Place] => [key, value]),
    ...[...given].filter(([key]) => !ownKeys.has(key)),
  ]);
  const params: { [name: string]: Json } = {};
  for (const [key, value] of places) params[key] = paramOf(key, value, plugin, environment);
  if (plugin.type === "nats" && plugin.stream === null && streamOf(params) === undefined)
    throw rule.refuse(`Neither this rule nor the plugin ${plugin.name} names a stream.`, "stream: a name, here or at the plugin");
  return params;
}

function paramOf(key: string, value: Place, plugin: Plugin, environment: Environment): Json {
  if (key === "queueName" && plugin.type === "grpc") return queueName(value, environment);
  if ((key === "stream" || key === "queueName") && plugin.type === "nats") return streamName(value, environment);
  value.warn(`'${key}' has no effect for the plugin ${plugin.name}, which is of type ${plugin.type}.`);
  return value.json();
}

/** NATS calls a queue a stream. */
function streamOf(params: RouteRule["params"]): Json | undefined {
  return params.stream ?? params.queueName;
}
