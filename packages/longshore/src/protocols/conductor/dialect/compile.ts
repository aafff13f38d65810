// Compiles a definition, with its task definitions in it, into a plan.

import { parseInSlices } from "../../../core/json/json-slices.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import { mapInSlices, type Sliced } from "../../../core/slices/slice-work.ts";
import { findCycle, makePlanInSlices } from "../../../engine/run/make-plan.ts";
import { nodesMax, type Plan } from "../../../engine/run/plan.ts";
import { Compiler } from "./compiler.ts";
import { compileValue } from "./expression.ts";
import { bad } from "./leaf.ts";
import { type GrownDef, withLoops } from "./loops.ts";
import type { WorkflowDef } from "./model.ts";
import type { ConductorTemplate } from "./template.ts";

export const dialectName = "conductor";

/** `source` is JSON text of a WorkflowDef that was read by `parseWorkflowDef` and completed by `snapshot`. */
export function* compileSource(source: string): Sliced<Plan> {
  return yield* compileInSlices((yield* parseInSlices(source)) as WorkflowDef);
}

export function* compileInSlices(definition: GrownDef): Sliced<Plan> {
  const compiler = new Compiler();
  const exits = yield* compiler.chain(definition.tasks, [], false);
  for (const growth of definition.grown ?? []) yield* compiler.grow(growth);
  const compiled = compiler.finish();
  const nodes = compiled.list;
  if (nodes.length > nodesMax) throw bad(`Workflow ${definition.name} has ${nodes.length} steps, at most ${nodesMax} are allowed.`);
  const waits = yield* mapInSlices(nodes, ({ id, after }, at) => ({ id, after: [...after, ...compiled.startersOf(at)] }));
  const cycle = findCycle(waits);
  if (cycle !== null) throw bad(`Workflow ${definition.name} waits in a circle: ${cycle.join(" -> ")}.`);
  const timed = definition.timeoutPolicy === "TIME_OUT_WF" && definition.timeoutSeconds > 0;
  return yield* makePlanInSlices({
    dialect: dialectName,
    nodes,
    output: outputOf(definition, compiler.joinsEverything && exits.length === 1 ? (exits[0] ?? null) : null),
    timeoutMs: timed ? definition.timeoutSeconds * 1_000 : null,
    outputAlways: true,
    successor: definition.failureWorkflow !== undefined && definition.failureWorkflow !== "",
    keepsCounting: true,
    reopensParent: true,
    waitsTakeReports: true,
    inputForm: inputFormOf(definition),
    origin: withLoops(definition, compiled.loops),
  });
}

/** A definition names its inputs, and may have values for some of them; it has no types. */
function inputFormOf({ inputParameters, inputTemplate }: WorkflowDef): JsonSchema | undefined {
  const names = new Set([...inputParameters, ...Object.keys(inputTemplate)]);
  if (names.size === 0) return undefined;
  const fields = [...names].map((name) => [name, Object.hasOwn(inputTemplate, name) ? { default: inputTemplate[name] } : {}]);
  return { type: "object", properties: Object.fromEntries(fields) };
}

function outputOf(definition: WorkflowDef, last: number | null): ConductorTemplate {
  const { outputParameters } = definition;
  const parameters = Object.keys(outputParameters).length === 0 ? null : compileValue(outputParameters);
  return { kind: "run-output", parameters, last };
}

/** A node of the plan that is no task of the definition; it is not shown. */
export function isGate(plan: Plan, at: number): boolean {
  return plan.nodes[at]?.hidden === true;
}
