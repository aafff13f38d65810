// All findings about a flow before it runs. Fatal ones prevent a run, errors would occur while it runs, warnings are for its author.
// diagnose-types.ts checks the flow against JSON Schemas, diagnose-routes.ts against a route configuration.

import type { Json } from "../../../core/json/json.ts";
import type { JsonPath } from "../../../core/json/json-position.ts";
import { atOnce, type Sliced, sliceItems } from "../../../core/slices/slice-work.ts";
import { fatalsInSlices } from "./diagnose-fatal.ts";
import { diagnoseRoutes } from "./diagnose-routes.ts";
import { type Known, TypeChecker } from "./diagnose-types.ts";
import { type Diagnostic, diagnostic } from "./diagnostic.ts";
import { type Expression, everyExpression } from "./expression.ts";
import type { Flow, Step } from "./flow.ts";
import { outputSchemaOf, type RouteFacts } from "./route-facts.ts";
import { unusablePattern } from "./schema-patterns.ts";
import { declaredVariables } from "./variables.ts";
import { everyRoot, visitExpressions } from "./visit.ts";

export interface DiagnoseOptions {
  /** When absent, components and routes are not checked. */
  readonly routes?: RouteFacts;
  /** Also check values against the schemas of their receivers. */
  readonly typeCheck?: boolean;
}

export function diagnose(flow: Flow, options: DiagnoseOptions = {}): Diagnostic[] {
  return atOnce(diagnoseInSlices(flow, options));
}

export function* diagnoseInSlices(flow: Flow, { routes, typeCheck = false }: DiagnoseOptions = {}): Sliced<Diagnostic[]> {
  const fatals = yield* fatalsInSlices(flow);
  const found = [...fatals, ...diagnoseHead(flow), ...(yield* diagnoseVariables(flow)), ...diagnosePatterns(flow)];
  add(found, yield* unreachable(flow));
  const outputs = new Map(flow.steps.map((step) => [step.id, schemaOf(flow, step, routes)]));
  const known: Known = { flow, outputs };
  const types = new TypeChecker(known);
  add(found, yield* types.accesses());
  add(found, yield* types.examples());
  if (routes !== undefined) add(found, yield* diagnoseRoutes(flow, routes, (inner) => diagnoseInSlices(inner, { routes, typeCheck })));
  if (typeCheck) add(found, yield* types.values(routes));
  return found;
}

function add(found: Diagnostic[], more: readonly Diagnostic[]): void {
  for (const one of more) found.push(one);
}

/** The schema of a step's output, from the flow itself or from the component's configuration. */
function schemaOf(flow: Flow, step: Step, routes: RouteFacts | undefined): Json {
  if (Object.hasOwn(flow.schemas.steps, step.id)) return flow.schemas.steps[step.id] as Json;
  return routes === undefined ? null : outputSchemaOf(step.component, routes);
}

function diagnoseHead(flow: Flow): Diagnostic[] {
  const found: Diagnostic[] = [];
  if (!flow.name?.trim()) found.push(diagnostic("missingFlowName", ["name"], "Workflow has no name"));
  if (flow.description === null) found.push(diagnostic("missingFlowDescription", ["description"], "Workflow has no description"));
  return found;
}

/** A flow that declares one variable must declare all of them. */
function* diagnoseVariables(flow: Flow): Sliced<Diagnostic[]> {
  const declared = declaredVariables(flow.schemas);
  const expected = declared === null || declared.size === 0 ? undefined : `one of ${[...declared.keys()].join(", ")}`;
  const found: Diagnostic[] = [];
  let undeclared = false;
  const look = (expression: Expression, at: JsonPath) => {
    if (expression.kind !== "variable" || expression.path.length === 0) return;
    const name = String(expression.path[0]);
    if (declared === null) undeclared = true;
    else if (!declared.has(name)) {
      const kind = expression.default === null ? "undefinedRequiredVariable" : "undefinedVariable";
      found.push(diagnostic(kind, at, `Variable '${name}' is not defined`, expected === undefined ? {} : { expected }));
    }
  };
  yield* everyRoot(flow, (root, at) => visitExpressions(root, at, look));
  if (undeclared) found.push(diagnostic("missingVariableSchema", ["schemas", "properties", "variables"], "No variable schema defined"));
  return found;
}

/** Variables are checked against their schemas when a run starts, so each pattern in those schemas must be supported. */
function diagnosePatterns({ schemas }: Flow): Diagnostic[] {
  const found = unusablePattern({ schema: schemas.variables, defs: schemas.defs });
  if (found === null) return [];
  const at = found.path[0] === "$defs" ? ["schemas", ...found.path] : ["schemas", "properties", "variables", ...found.path];
  const expected = "a pattern without lookahead, lookbehind and backreferences";
  return [diagnostic("unusablePattern", at, `The pattern cannot be used: ${found.message}`, { expected })];
}

/** Reports steps that can never run: on no branch does the output, or a step that must run, need them. */
function* unreachable({ steps, output }: Flow): Sliced<Diagnostic[]> {
  const index = new Map(steps.map(({ id }, at) => [id, at]));
  const wanted = new Set<number>(steps.flatMap(({ mustExecute }, at) => (mustExecute ? [at] : [])));
  const want = (root: Expression) => {
    for (const expression of everyExpression(root)) {
      const at = expression.kind === "step" ? index.get(expression.step) : undefined;
      if (at !== undefined) wanted.add(at);
    }
  };
  want(output);
  let walked = 0;
  // The loop also visits the steps that it adds.
  for (const at of wanted) {
    if (++walked % sliceItems === 0) yield;
    want((steps[at] as Step).input);
  }
  return steps.flatMap(({ id }, at) =>
    wanted.has(at) ? [] : [diagnostic("unreachableStep", ["steps", at], `Step '${id}' is not referenced by any other step or the output`)],
  );
}
