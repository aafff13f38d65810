// A definition as this wire shows it: the flow, and the step of each node of its plan. Hidden nodes, which come from expressions, are not
// steps and are not shown. A definition of another dialect is shown as a flow whose components are the tasks that its steps call.

import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import { parseExact } from "../../../../core/json/json-exact.ts";
import type { Definition } from "../../../../engine/run/dialect.ts";
import type { Plan, PlanNode } from "../../../../engine/run/plan.ts";
import { DefinitionViews } from "../../../../engine/run/views.ts";
import { stepOf } from "../../dialect/compile.ts";
import type { Step } from "../../dialect/flow.ts";
import { dialectName } from "../../dialect/source.ts";

export interface StepView {
  readonly stepId: string;
  /** The step's index in the flow. */
  readonly stepIndex: number;
  readonly component: string;
  readonly node: number;
  /** The step's definition; undefined for a step of another dialect. */
  readonly step: Step | undefined;
  /** True when the step runs only if another step or the output needs it. */
  readonly demanded: boolean;
}

export interface FlowView {
  /** The stored flow. */
  readonly flow: JsonObject;
  readonly name: string | undefined;
  /** In the order of the flow. */
  readonly steps: readonly StepView[];
  readonly byNode: ReadonlyMap<number, StepView>;
}

export type FlowViews = DefinitionViews<FlowView>;

export function createFlowViews(plan: (definition: Definition) => Plan): FlowViews {
  return new DefinitionViews(plan, viewOf);
}

function viewOf(definition: Definition, plan: Plan): FlowView {
  const flow = definition.dialect === dialectName ? (parseExact(definition.source) as JsonObject) : foreign(definition, plan);
  const steps = stepsOf(flow, plan, definition.dialect === dialectName);
  const name = typeof flow.name === "string" ? flow.name : undefined;
  return { flow, name, steps, byNode: new Map(steps.map((step) => [step.node, step])) };
}

function stepsOf(flow: JsonObject, plan: Plan, isFlow: boolean): StepView[] {
  const steps: StepView[] = [];
  (Array.isArray(flow.steps) ? flow.steps : []).forEach((step: Json, stepIndex) => {
    const { id, component } = isObject(step) ? (step as JsonObject) : {};
    const node = plan.index.get(String(id));
    if (node === undefined) return;
    const { [node]: planned } = plan.nodes;
    const said = isFlow ? stepOf(planned) : undefined;
    steps.push({ stepId: String(id), stepIndex, component: String(component), node, step: said, demanded: planned?.demanded ?? false });
  });
  return steps;
}

function foreign({ name }: Definition, plan: Plan): JsonObject {
  return { name, steps: plan.nodes.map((node) => ({ id: node.id, component: `/${taskOf(node)}` })) };
}

function taskOf(node: PlanNode): string {
  if (node.kind === "task") return node.lanes[0]?.name ?? node.id;
  return node.kind === "run" ? (node.workflow ?? node.id) : node.id;
}
