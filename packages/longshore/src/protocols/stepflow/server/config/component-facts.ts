// The components of a configuration, for diagnostics: every plugin that might take a step, with any input and any registrations.

import type { Json } from "../../../../core/json/json.ts";
import type { ComponentFact, RouteFacts } from "../../dialect/route-facts.ts";
import type { Plugin, StepflowConfig } from "./config.ts";
import { componentOf, inOrder, type Route } from "./route.ts";

/** A built-in component. */
export interface BuiltinFact {
  readonly path: string;
  readonly inputSchema: Json;
  readonly outputSchema: Json;
}

export function routeFacts(config: StepflowConfig, builtins: readonly BuiltinFact[] = []): RouteFacts {
  const routes = inOrder(config.routes);
  const known = new Map(builtins.map((builtin) => [builtin.path, builtin]));
  return {
    plugins: [...config.plugins.keys()],
    routes: config.routes.map(({ pattern, rules }) => ({ path: pattern.text, plugins: rules.map(({ plugin }) => plugin) })),
    candidates(component) {
      const found: ComponentFact[] = [];
      for (const route of routes) {
        const { facts, always } = factsOf(route, component, config, known);
        found.push(...facts);
        // A rule without conditions takes every step, so later rules are never reached.
        if (always) break;
      }
      return found;
    },
  };
}

function factsOf(
  { pattern, rules }: Route,
  path: string,
  config: StepflowConfig,
  builtins: ReadonlyMap<string, BuiltinFact>,
): { facts: ComponentFact[]; always: boolean } {
  const captures = pattern.match(path);
  const facts: ComponentFact[] = [];
  let always = false;
  for (const rule of captures === undefined ? [] : rules) {
    const component = componentOf(rule, pattern, captures ?? {});
    const plugin = config.plugins.get(rule.plugin);
    if (component === null || plugin === undefined || rule.deny.includes(component)) continue;
    if (rule.allow !== null && !rule.allow.includes(component)) continue;
    facts.push({ plugin: plugin.name, type: plugin.type, remainder: component, ...schemasOf(plugin, component, builtins) });
    always ||= rule.conditions.length === 0;
  }
  return { facts, always };
}

function schemasOf(
  plugin: Plugin,
  component: string,
  builtins: ReadonlyMap<string, BuiltinFact>,
): Pick<ComponentFact, "inputSchema" | "outputSchema"> {
  const said = plugin.type === "mock" ? plugin.components.get(component) : plugin.type === "builtin" ? builtins.get(component) : undefined;
  return said === undefined ? {} : { inputSchema: said.inputSchema, outputSchema: said.outputSchema };
}
