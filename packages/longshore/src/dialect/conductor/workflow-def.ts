// Reads and checks workflow definitions. What is wrong with a whole definition is told by its checks.

import { LongshoreError } from "../../errors.ts";
import { isObject, type Json } from "../../json.ts";
import { checkWorkflow } from "./check.ts";
import { compileWorkflow } from "./compile.ts";
import { countExpressions, expressionsMax } from "./expression-count.ts";
import {
  anything,
  choice,
  type Field,
  type FieldTable,
  flag,
  map,
  optionalFlag,
  optionalMap,
  optionalWhole,
  readFields,
  text,
  texts,
  whole,
} from "./fields.ts";
import type { SubWorkflowParam, TaskDef, WorkflowDef, WorkflowTask } from "./model.ts";
import { auditFields, inlineTaskDef, schema } from "./task-def.ts";
import { type Checked, type Violation, Violations } from "./violation.ts";

/** Each task is at most a few nodes of a plan, which has a limit of its own. */
export const tasksMax = 5_000;
/** Branches inside branches, inline definitions included: everything that walks a definition calls itself for each. */
export const nestingMax = 30;

/**
 * A definition as it is kept and given back. `path` is what Conductor calls the argument, such as `registerWorkflowDef.arg0`.
 * `mayBeEmpty` is for definitions that come inside a start request, which may have no task at all.
 */
export function parseWorkflowDef(source: unknown, path: string, options: { mayBeEmpty?: boolean } = {}): Checked<WorkflowDef> {
  if (countExpressions(source as Json, expressionsMax) > expressionsMax)
    return { violations: [{ path, message: `has more than ${expressionsMax} expressions, which is the limit of a definition` }] };
  const violations = new Violations();
  const value = new Reader(violations).workflow(source, path, options.mayBeEmpty ?? false);
  return value === null || violations.list.length > 0 ? { violations: violations.list } : { value };
}

/** The body of `PUT /metadata/workflow`. Conductor refuses the whole list when one is wrong; each is told apart here. */
export function parseWorkflowDefs(source: unknown, path: string): { violations: readonly Violation[] } | { list: Checked<WorkflowDef>[] } {
  if (!Array.isArray(source)) return { violations: [{ path, message: "must be a list of workflow definitions" }] };
  if (source.length === 0) return { violations: [{ path, message: "WorkflowDefList is empty" }] };
  if (source.length > workflowsMax)
    return { violations: [{ path, message: `has ${source.length} definitions, at most ${workflowsMax} are allowed` }] };
  return { list: source.map((item, at) => parseWorkflowDef(item, `${path}[${at}]`)) };
}

/** One request may bring so many, as one bulk request may name so many runs. */
const workflowsMax = 1_000;

class Reader {
  readonly #violations: Violations;
  #tasks = 0;
  #nesting = 0;
  #tooMany = false;

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  workflow(source: unknown, path: string, mayBeEmpty: boolean): WorkflowDef | null {
    const table: FieldTable = { ...workflowFields, tasks: (given, at) => this.#list(given, at) };
    const before = this.#violations.list.length;
    const definition = readFields<WorkflowDef>(table, source, path, this.#violations);
    // What could not be read at all would only be told twice.
    if (definition === null || this.#violations.list.length > before) return definition;
    checkWorkflow(definition, path, { mayBeEmpty }, this.#violations);
    if (this.#violations.list.length === before) this.#tryOut(definition, path);
    return definition;
  }

  /** What only shows when a plan is made of it, such as tasks that wait for each other. */
  #tryOut(definition: WorkflowDef, path: string): void {
    try {
      compileWorkflow(definition);
    } catch (error) {
      if (!(error instanceof LongshoreError)) throw error;
      this.#violations.add(path, error.message);
    }
  }

  #list(given: Json | undefined, path: string): readonly WorkflowTask[] {
    if (given === undefined || given === null) return [];
    if (!Array.isArray(given)) {
      this.#violations.add(path, "must be a list of tasks", given);
      return [];
    }
    return this.#inside(path, () => given.flatMap((item, at) => this.#task(item, `${path}[${at}]`) ?? [])) ?? [];
  }

  #task(source: Json, path: string): WorkflowTask | null {
    if (++this.#tasks > tasksMax) {
      if (!this.#tooMany) this.#violations.add(path, `is one task more than the ${tasksMax} that are allowed`);
      this.#tooMany = true;
      return null;
    }
    const task = readFields<WorkflowTask>(this.#taskFields, source, path, this.#violations);
    return task === null ? null : { ...task, ...inlineDefinition(task, path, this.#violations) };
  }

  readonly #taskFields: FieldTable = {
    name: text,
    taskReferenceName: text,
    description: text,
    inputParameters: map,
    type: (given, path, violations) => text(given, path, violations) ?? "SIMPLE",
    dynamicTaskNameParam: text,
    caseValueParam: text,
    caseExpression: text,
    scriptExpression: text,
    decisionCases: (given, path) => this.#cases(given, path),
    dynamicForkJoinTasksParam: text,
    dynamicForkTasksParam: text,
    dynamicForkTasksInputParamName: text,
    defaultCase: (given, path) => this.#list(given, path),
    forkTasks: (given, path) => this.#branches(given, path),
    startDelay: whole(0),
    subWorkflowParam: (given, path) => this.#subWorkflow(given, path),
    joinOn: texts,
    sink: text,
    optional: flag(false),
    permissive: flag(false),
    taskDefinition: optionalMap,
    rateLimited: optionalFlag,
    defaultExclusiveJoinTask: texts,
    asyncComplete: flag(false),
    loopCondition: text,
    loopOver: (given, path) => this.#list(given, path),
    retryCount: optionalWhole,
    evaluatorType: text,
    expression: text,
    onStateChange: map,
    metadata: map,
    joinStatus: text,
    joinMode: choice(["SYNC", "ASYNC"], undefined),
    startWhen: choice(["FIRST_PART"], undefined),
  };

  #cases(given: Json | undefined, path: string): { [key: string]: readonly WorkflowTask[] } {
    if (given === undefined || given === null) return {};
    if (!isObject(given)) {
      this.#violations.add(path, "must be an object of lists of tasks", given);
      return {};
    }
    return Object.fromEntries(
      Object.entries(given as { [key: string]: Json }).map(([key, list]) => [key, this.#list(list, `${path}[${key}]`)]),
    );
  }

  #branches(given: Json | undefined, path: string): (readonly WorkflowTask[])[] {
    if (given === undefined || given === null) return [];
    if (Array.isArray(given)) return given.map((branch, at) => this.#list(branch, `${path}[${at}]`));
    this.#violations.add(path, "must be a list of lists of tasks", given);
    return [];
  }

  #subWorkflow(given: Json | undefined, path: string): SubWorkflowParam | undefined {
    if (given === undefined || given === null) return undefined;
    const table: FieldTable = { ...subWorkflowFields, workflowDefinition: (inner, at) => this.#definition(inner, at) };
    const param = readFields<SubWorkflowParam>(table, given, path, this.#violations);
    if (param === null || param.workflowDefinition !== undefined || param.name) return param ?? undefined;
    if (param.name === undefined) this.#violations.add(`${path}.name`, "SubWorkflowParams name cannot be null");
    this.#violations.add(`${path}.name`, "SubWorkflowParams name cannot be empty", param.name);
    return param;
  }

  #definition(given: Json | undefined, path: string): WorkflowDef | string | undefined {
    if (given === undefined || given === null) return undefined;
    if (typeof given === "string") return given;
    return this.#inside(path, () => this.workflow(given, path, false)) ?? undefined;
  }

  #inside<Result>(path: string, read: () => Result): Result | null {
    if (this.#nesting >= nestingMax) {
      this.#violations.add(path, `stands deeper than the ${nestingMax} levels that are allowed`);
      return null;
    }
    this.#nesting++;
    const result = read();
    this.#nesting--;
    return result;
  }
}

/** A number, or a text that is an expression. */
const wholeOrExpression: Field = (given, path, violations) =>
  typeof given === "string" && given.startsWith("${") ? given : optionalWhole(given, path, violations);

const subWorkflowFields: FieldTable = {
  name: text,
  version: wholeOrExpression,
  taskToDomain: optionalMap,
  workflowDefinition: anything,
  priority: wholeOrExpression,
  idempotencyKey: text,
  idempotencyStrategy: text,
};

const workflowFields: FieldTable = {
  ...auditFields,
  name: text,
  description: text,
  version: whole(1),
  tasks: anything,
  inputParameters: texts,
  outputParameters: map,
  failureWorkflow: text,
  failureWorkflowVersion: optionalWhole,
  schemaVersion: whole(2),
  restartable: flag(true),
  workflowStatusListenerEnabled: flag(false),
  workflowStatusListenerSink: text,
  ownerEmail: text,
  timeoutPolicy: choice(["TIME_OUT_WF", "ALERT_ONLY"], "ALERT_ONLY"),
  timeoutSeconds: whole(0),
  variables: map,
  inputTemplate: map,
  rateLimitConfig: optionalMap,
  inputSchema: schema,
  outputSchema: schema,
  enforceSchema: flag(true),
  metadata: map,
  cacheConfig: optionalMap,
  maskedFields: texts,
};

function inlineDefinition(task: WorkflowTask, path: string, violations: Violations): { taskDefinition?: TaskDef } {
  if (task.taskDefinition === undefined) return {};
  return { taskDefinition: inlineTaskDef(task.taskDefinition, task.name ?? "", `${path}.taskDefinition`, violations) };
}
