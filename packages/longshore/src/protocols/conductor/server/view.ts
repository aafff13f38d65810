// A definition as this wire shows it: for each step, Conductor's task and its constant text, which is made only once. A definition of
// another dialect is shown as if each of its steps were a SIMPLE task.

import type { JsonObject } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { Plan, PlanNode } from "../../../engine/run/plan.ts";
import { DefinitionViews } from "../../../engine/run/views.ts";
import { dialectName } from "../dialect/compile.ts";
import { hideCredentials } from "../dialect/credentials.ts";
import { loopsOf, type Within, withoutGrowth } from "../dialect/loops.ts";
import type { TaskDef, WorkflowDef, WorkflowTask } from "../dialect/model.ts";
import { definitionOf, workflowTaskOf } from "../dialect/records.ts";

/** One step on the wire. */
export interface StepView {
  readonly task: WorkflowTask;
  readonly node: PlanNode | undefined;
  readonly definition: TaskDef | undefined;
  /** The loop that it belongs to. */
  readonly within: Within | undefined;
  /** JSON texts. */
  readonly taskText: string;
  readonly definitionText: string | undefined;
}

export interface DefinitionView {
  readonly dialect: string;
  readonly name: string;
  readonly version: number;
  readonly definition: WorkflowDef;
  /** JSON text of the whole definition. */
  readonly text: string;
  /** By node of the plan; undefined for a node without a task of the definition. */
  readonly steps: readonly (StepView | undefined)[];
}

export type Views = DefinitionViews<DefinitionView>;

export function createViews(plan: (definition: Definition) => Plan): Views {
  return new DefinitionViews(plan, viewOf);
}

function viewOf(definition: Definition, plan: Plan): DefinitionView {
  const ours = definition.dialect === dialectName;
  const source = ours ? withoutGrowth(definitionOf(plan)) : foreign(definition, plan);
  const loops = loopsOf(plan);
  const steps = plan.nodes.map((node, at) => {
    const task = ours ? workflowTaskOf(node) : plainTask(node);
    return task === undefined ? undefined : stepOf(task, node, ours ? loops.of(at) : undefined);
  });
  const { dialect } = definition;
  let text: string | undefined;
  return {
    ...{ dialect, name: source.name, version: source.version, definition: source, steps },
    get text() {
      text ??= writeExact({ ...source, tasks: source.tasks.map(wholeTask) });
      return text;
    },
  };
}

/** Texts are created when they are first shown: a definition may have thousands of steps that a run never starts. */
function stepOf(task: WorkflowTask, node: PlanNode | undefined, within?: Within): StepView {
  const definition = task.taskDefinition;
  let [taskText, definitionText]: (string | undefined)[] = [];
  return {
    ...{ task, node, definition, within },
    get taskText() {
      taskText ??= writeExact(wholeTask(task));
      return taskText;
    },
    get definitionText() {
      if (definition !== undefined) definitionText ??= writeExact(definition);
      return definitionText;
    },
  };
}

/** Adds empty lists and maps, which are not stored but shown in runs. */
function wholeTask(task: WorkflowTask): JsonObject {
  const inner = (tasks: readonly WorkflowTask[] | undefined) => (tasks ?? []).map(wholeTask);
  const cases = Object.entries(task.decisionCases ?? {}).map(([key, tasks]) => [key, inner(tasks)] as const);
  return {
    decisionCases: {},
    joinOn: [],
    defaultExclusiveJoinTask: [],
    onStateChange: {},
    metadata: {},
    ...(task as unknown as JsonObject),
    ...(task.type === "HTTP" ? { inputParameters: hideCredentials(task.inputParameters) as JsonObject } : {}),
    ...(cases.length === 0 ? {} : { decisionCases: Object.fromEntries(cases) }),
    defaultCase: inner(task.defaultCase),
    forkTasks: (task.forkTasks ?? []).map(inner),
    loopOver: inner(task.loopOver),
  } as JsonObject;
}

function plainTask(node: PlanNode): WorkflowTask {
  const name = node.kind === "task" ? (node.lanes[0]?.name ?? node.id) : node.id;
  const type = node.kind === "task" ? "SIMPLE" : node.kind === "run" ? "SUB_WORKFLOW" : "NOOP";
  return { name, taskReferenceName: node.id, type, inputParameters: {}, startDelay: 0, optional: false, permissive: false };
}

/** A task that belongs to no run. */
export function loosePart(task: TaskRow): StepView {
  const name = task.lane?.name ?? task.step;
  const shown = {
    name,
    taskReferenceName: task.step,
    type: "SIMPLE",
    inputParameters: {},
    startDelay: 0,
    optional: false,
    permissive: false,
  };
  return stepOf(shown, undefined);
}

function foreign(definition: Definition, plan: Plan): WorkflowDef {
  return {
    name: definition.name,
    version: definition.version,
    tasks: plan.nodes.map(plainTask),
    inputParameters: [],
    outputParameters: {},
    schemaVersion: 2,
    restartable: true,
    timeoutPolicy: plan.timeoutMs === null ? "ALERT_ONLY" : "TIME_OUT_WF",
    timeoutSeconds: Math.ceil((plan.timeoutMs ?? 0) / 1_000),
    variables: {},
    inputTemplate: {},
    createTime: definition.createdAt,
  };
}
