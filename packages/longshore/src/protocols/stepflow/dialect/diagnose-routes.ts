// Checks a flow against a route configuration, and the configuration against itself.

import { isObject, type Json } from "../../../core/json/json.ts";
import type { JsonPath } from "../../../core/json/json-position.ts";
import { type Sliced, sliceItems } from "../../../core/slices/slice-work.ts";
import { type Diagnostic, diagnostic } from "./diagnostic.ts";
import type { Expression } from "./expression.ts";
import { type Flow, readInSlices, refuse, type Step } from "./flow.ts";
import type { ComponentFact, RouteFacts } from "./route-facts.ts";

/** Returns the findings about a nested flow. */
type Diagnose = (flow: Flow) => Sliced<Diagnostic[]>;

export function* diagnoseRoutes(flow: Flow, routes: RouteFacts, diagnose: Diagnose): Sliced<Diagnostic[]> {
  const found: Diagnostic[] = [];
  for (const [index, step] of flow.steps.entries()) {
    if (index % sliceItems === sliceItems - 1) yield;
    for (const one of yield* diagnoseComponent(step, ["steps", index], routes, diagnose)) found.push(one);
  }
  return [...found, ...diagnoseConfiguration(routes)];
}

function* diagnoseComponent(step: Step, at: JsonPath, routes: RouteFacts, diagnose: Diagnose): Sliced<Diagnostic[]> {
  const { id, component } = step;
  const here = [...at, "component"];
  const expected = "a path such as /python/udf";
  if (component.replaceAll("/", "").trim() === "")
    return [diagnostic("emptyComponentName", here, `Empty component name in step '${id}'`, { expected })];
  const invalid = (error: string) =>
    diagnostic("invalidComponent", here, `Invalid component '${component}' in step '${id}': ${error}`, { expected });
  if (!component.startsWith("/")) return [invalid("Component path must start with '/'")];
  const candidates = routes.candidates(component);
  if (candidates.length === 0) return [invalid("no route leads to it")];
  const mock = candidates.some(({ type }) => type === "mock")
    ? [diagnostic("mockComponent", here, `Step '${id}' uses a mock component`)]
    : [];
  return [...mock, ...(yield* diagnoseSubflows(step, [...at, "input"], candidates, diagnose))];
}

/** The input fields in which built-in components take inline flows. */
const subflowFields: { readonly [component: string]: string } = { "/map": "workflow", "/iterate": "flow", "/put_blob": "data" };

function* diagnoseSubflows(step: Step, at: JsonPath, candidates: readonly ComponentFact[], diagnose: Diagnose): Sliced<Diagnostic[]> {
  const builtin = candidates.find(({ type }) => type === "builtin");
  const field = builtin === undefined ? undefined : subflowFields[builtin.remainder];
  if (field === undefined) return [];
  if (builtin?.remainder === "/put_blob" && literalIn(step.input, "blob_type") !== "flow") return [];
  const flow = literalIn(step.input, field);
  return flow === undefined ? [] : yield* diagnoseSubflow(flow, [...at, field], diagnose);
}

function* diagnoseSubflow(document: Json, at: JsonPath, diagnose: Diagnose): Sliced<Diagnostic[]> {
  let flow: Flow;
  try {
    flow = yield* readInSlices(document, refuse);
  } catch (error) {
    return [diagnostic("invalidSubflowLiteral", at, `Invalid subflow literal: ${(error as Error).message}`, { expected: "a flow" })];
  }
  const found = yield* diagnose(flow);
  return found
    .filter(({ code }) => !isAboutConfiguration(code))
    .map((inner) =>
      diagnostic(inner.kind, [...at, ...inner.at], inner.message, { experimental: inner.experimental, expected: inner.expected }),
    );
}

/** The value of a literal field; undefined when it is an expression or absent. */
function literalIn(input: Expression, field: string): Json | undefined {
  if (input.kind === "literal") return isObject(input.value) ? (input.value[field] as Json | undefined) : undefined;
  const found = input.kind === "object" ? input.fields.find(([key]) => key === field)?.[1] : undefined;
  return found?.kind === "literal" ? found.value : undefined;
}

function isAboutConfiguration(code: number): boolean {
  return (code >= 1_200 && code < 1_300) || code === 2_200;
}

function diagnoseConfiguration({ plugins, routes }: RouteFacts): Diagnostic[] {
  const found: Diagnostic[] = [];
  if (plugins.length === 0) found.push(diagnostic("noPluginsConfigured", ["plugins"], "No plugins configured"));
  if (routes.length === 0) found.push(diagnostic("noRoutingRulesConfigured", ["routes"], "No routing rules configured"));
  const used = new Set(routes.flatMap((route) => route.plugins));
  for (const { path, plugins: named } of routes) {
    named.forEach((plugin, index) => {
      if (plugins.includes(plugin)) return;
      const message = `Routing rule ${index + 1} for path '${path}' references unknown plugin '${plugin}'`;
      found.push(
        diagnostic("invalidRouteReference", ["routes", path, index, "plugin"], message, { expected: `one of ${plugins.join(", ")}` }),
      );
    });
  }
  for (const plugin of plugins)
    if (!used.has(plugin))
      found.push(diagnostic("unusedPlugin", ["plugins", plugin], `Plugin '${plugin}' is not referenced by any routing rule`));
  return found;
}
