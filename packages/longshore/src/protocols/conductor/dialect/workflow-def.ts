// Reads and checks workflow definitions. The checks of a whole definition report its mistakes.

import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type Json } from "../../../core/json/json.ts";
import { atOnce, eachInSlices, type Sliced, sliceItems } from "../../../core/slices/slice-work.ts";
import { checkTask, checkWorkflow } from "./check.ts";
import { compileInSlices } from "./compile.ts";
import { countExpressions, expressionsMax, valueExpressionsMax } from "./expression-count.ts";
import {
  anything,
  choice,
  type Field,
  type FieldTable,
  flag,
  map,
  Nested,
  optionalFlag,
  optionalMap,
  optionalWhole,
  readFieldsInSlices,
  text,
  texts,
  whole,
} from "./fields.ts";
import type { SubWorkflowParam, TaskDef, WorkflowDef, WorkflowTask } from "./model.ts";
import { auditFields, inlineTaskDef, schema } from "./task-def.ts";
import { type Checked, type Violation, Violations } from "./violation.ts";

/** Each task is at most a few nodes of a plan, which has a limit of its own. */
export const tasksMax = 5_000;
/** Maximum nesting of branches, inline definitions included: all code that visits a definition is recursive. */
export const nestingMax = 30;

/**
 * A definition as it is stored and returned. `path` is Conductor's name for the argument, such as `registerWorkflowDef.arg0`. `mayBeEmpty`
 * is for definitions inside a start request, which may have no task.
 */
export function parseWorkflowDef(source: unknown, path: string, options: { mayBeEmpty?: boolean } = {}): Checked<WorkflowDef> {
  return atOnce(parseInSlices(source, path, options));
}

export function* parseInSlices(source: unknown, path: string, options: { mayBeEmpty?: boolean } = {}): Sliced<Checked<WorkflowDef>> {
  const expressions = countExpressions(source as Json, expressionsMax);
  if (expressions > expressionsMax)
    return { violations: [{ path, message: `has more than ${expressionsMax} expressions, which is the limit of a definition` }] };
  const violations = new Violations();
  const value = yield* new Reader(violations, expressions > valueExpressionsMax).workflow(source, path, options.mayBeEmpty ?? false);
  return value === null || violations.list.length > 0 ? { violations: violations.list } : { value };
}

/** Tasks that a run brings. Each is checked by itself: what it needs of the workflow around it is not known here. */
export function* parseTasksInSlices(source: Json, path: string): Sliced<Checked<readonly WorkflowTask[]>> {
  const violations = new Violations();
  const value = yield* new Reader(violations, true).tasks(source, path);
  yield* eachInSlices(value, (task, at) => checkTask(task, `${path}[${at}]`, violations));
  return violations.list.length > 0 ? { violations: violations.list } : { value };
}

/** The body of `PUT /metadata/workflow`. Conductor refuses the whole list when one is wrong; here each is judged alone. */
export function parseWorkflowDefs(source: unknown, path: string): ParsedDefs {
  return atOnce(parseAllInSlices(source, path));
}

type ParsedDefs = { violations: readonly Violation[] } | { list: Checked<WorkflowDef>[] };

export function* parseAllInSlices(source: unknown, path: string): Sliced<ParsedDefs> {
  if (!Array.isArray(source)) return { violations: [{ path, message: "must be a list of workflow definitions" }] };
  if (source.length === 0) return { violations: [{ path, message: "WorkflowDefList is empty" }] };
  if (source.length > workflowsMax)
    return { violations: [{ path, message: `has ${source.length} definitions, at most ${workflowsMax} are allowed` }] };
  const list: Checked<WorkflowDef>[] = [];
  for (const [at, item] of source.entries()) {
    list.push(yield* parseInSlices(item, `${path}[${at}]`));
    // Each definition is small, or was already checked in turns.
    if (at % definitionsInSlice === definitionsInSlice - 1) yield;
  }
  return { list };
}

/** Maximum number in one request, as for runs in a bulk request. */
const workflowsMax = 1_000;
const definitionsInSlice = 20;

class Reader {
  readonly #violations: Violations;
  #tasks = 0;
  #nesting = 0;
  #tooMany = false;
  readonly #counts: boolean;

  /** `counts` is true for a definition with so many expressions that one of its values may have too many. */
  constructor(violations: Violations, counts: boolean) {
    this.#violations = violations;
    this.#counts = counts;
  }

  *workflow(source: unknown, path: string, mayBeEmpty: boolean): Sliced<WorkflowDef | null> {
    const table: FieldTable = { ...workflowFields, tasks: (given, at) => this.#lists(given, at) };
    const before = this.#violations.list.length;
    const definition = yield* readFieldsInSlices<WorkflowDef>(table, source, path, this.#violations);
    // A definition with read errors is not checked further: its mistakes would be reported twice.
    if (definition === null || this.#violations.list.length > before) return definition;
    this.#countIn(definition.outputParameters, `${path}.outputParameters`);
    yield* checkWorkflow(definition, path, { mayBeEmpty }, this.#violations);
    if (this.#violations.list.length === before) yield* this.#tryOut(definition, path);
    return definition;
  }

  tasks(given: Json, path: string): Sliced<readonly WorkflowTask[]> {
    return this.#list(given, path);
  }

  #countIn(value: Json, path: string): void {
    if (this.#counts && countExpressions(value, valueExpressionsMax) > valueExpressionsMax)
      this.#violations.add(path, `has more than ${valueExpressionsMax} expressions, which is the limit of one task`);
  }

  /** Finds mistakes that only compiling shows, such as tasks that wait for each other. */
  *#tryOut(definition: WorkflowDef, path: string): Sliced<void> {
    try {
      yield* compileInSlices(definition);
    } catch (error) {
      if (!(error instanceof LongshoreError)) throw error;
      this.#violations.add(path, error.message);
    }
  }

  #lists(given: Json | undefined, path: string): Nested | readonly WorkflowTask[] {
    return given === undefined || given === null ? [] : new Nested(this.#list(given, path));
  }

  *#list(given: Json, path: string): Sliced<readonly WorkflowTask[]> {
    if (given === null) return [];
    if (!Array.isArray(given)) {
      this.#violations.add(path, "must be a list of tasks", given);
      return [];
    }
    if (!this.#enter(path)) return [];
    const tasks: WorkflowTask[] = [];
    for (const [at, item] of given.entries()) {
      const task = yield* this.#task(item, `${path}[${at}]`);
      if (task !== null) tasks.push(task);
    }
    this.#nesting--;
    return tasks;
  }

  *#task(source: Json, path: string): Sliced<WorkflowTask | null> {
    if (this.#tasks % sliceItems === sliceItems - 1) yield;
    if (++this.#tasks > tasksMax) {
      if (!this.#tooMany) this.#violations.add(path, `is one task more than the ${tasksMax} that are allowed`);
      this.#tooMany = true;
      return null;
    }
    const task = yield* readFieldsInSlices<WorkflowTask>(this.#taskFields, source, path, this.#violations);
    if (task !== null) this.#countIn(task.inputParameters, `${path}.inputParameters`);
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
    decisionCases: (given, path) => (given === undefined || given === null ? {} : new Nested(this.#cases(given, path))),
    dynamicForkJoinTasksParam: text,
    dynamicForkTasksParam: text,
    dynamicForkTasksInputParamName: text,
    defaultCase: (given, path) => this.#lists(given, path),
    forkTasks: (given, path) => (given === undefined || given === null ? [] : new Nested(this.#branches(given, path))),
    startDelay: whole(0),
    subWorkflowParam: (given, path) => (given === undefined || given === null ? undefined : new Nested(this.#subWorkflow(given, path))),
    joinOn: texts,
    sink: text,
    optional: flag(false),
    permissive: flag(false),
    taskDefinition: optionalMap,
    rateLimited: optionalFlag,
    defaultExclusiveJoinTask: texts,
    asyncComplete: flag(false),
    loopCondition: text,
    loopOver: (given, path) => this.#lists(given, path),
    items: text,
    retryCount: optionalWhole,
    evaluatorType: text,
    expression: text,
    onStateChange: map,
    metadata: map,
    joinStatus: text,
    joinMode: choice(["SYNC", "ASYNC"], undefined),
    startWhen: choice(["FIRST_PART"], undefined),
  };

  *#cases(given: Json, path: string): Sliced<{ [key: string]: readonly WorkflowTask[] }> {
    if (!isObject(given)) {
      this.#violations.add(path, "must be an object of lists of tasks", given);
      return {};
    }
    const cases: [string, readonly WorkflowTask[]][] = [];
    for (const [key, list] of Object.entries(given as { [key: string]: Json }))
      cases.push([key, yield* this.#list(list, `${path}[${key}]`)]);
    return Object.fromEntries(cases);
  }

  *#branches(given: Json, path: string): Sliced<(readonly WorkflowTask[])[]> {
    const branches: (readonly WorkflowTask[])[] = [];
    if (!Array.isArray(given)) this.#violations.add(path, "must be a list of lists of tasks", given);
    else for (const [at, branch] of given.entries()) branches.push(yield* this.#list(branch, `${path}[${at}]`));
    return branches;
  }

  *#subWorkflow(given: Json, path: string): Sliced<SubWorkflowParam | undefined> {
    const table: FieldTable = { ...subWorkflowFields, workflowDefinition: (inner, at) => this.#definition(inner, at) };
    const param = yield* readFieldsInSlices<SubWorkflowParam>(table, given, path, this.#violations);
    if (param === null || param.workflowDefinition !== undefined || param.name) return param ?? undefined;
    if (param.name === undefined) this.#violations.add(`${path}.name`, "SubWorkflowParams name cannot be null");
    this.#violations.add(`${path}.name`, "SubWorkflowParams name cannot be empty", param.name);
    return param;
  }

  #definition(given: Json | undefined, path: string): Nested | string | undefined {
    if (given === undefined || given === null) return undefined;
    return typeof given === "string" ? given : new Nested(this.#inner(given, path));
  }

  *#inner(given: Json, path: string): Sliced<WorkflowDef | undefined> {
    if (!this.#enter(path)) return undefined;
    const definition = yield* this.workflow(given, path, false);
    this.#nesting--;
    return definition ?? undefined;
  }

  #enter(path: string): boolean {
    if (this.#nesting < nestingMax) {
      this.#nesting++;
      return true;
    }
    this.#violations.add(path, `is nested deeper than the ${nestingMax} levels that are allowed`);
    return false;
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
