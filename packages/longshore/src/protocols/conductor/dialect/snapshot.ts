// A definition as a run stores it. It includes the definitions of its tasks, so that later changes of these have no effect on open runs.

import { isObject, isScalar, type Json, type JsonObject, setOwn } from "../../../core/json/json.ts";
import { atOnce, type Sliced, sliceItems } from "../../../core/slices/slice-work.ts";
import { textSize } from "../../../core/text-size.ts";
import { javaText } from "./java-text.ts";
import { everyTask, type TaskDef, type WorkflowDef, type WorkflowTask } from "./model.ts";
import { bareTaskDef, defaultTaskDef } from "./task-def.ts";

/** What has to be looked up before a definition can be completed. */
export interface Lookups {
  /** Names of task definitions. */
  readonly taskDefs: readonly string[];
  /** Names of workflows whose newest version is meant, by SUB_WORKFLOW tasks that name none. */
  readonly workflows: readonly string[];
}

export function lookupsOf(definition: WorkflowDef): Lookups {
  const taskDefs = new Set<string>();
  const workflows = new Set<string>();
  for (const task of everyTask(definition.tasks)) {
    if (task.taskDefinition === undefined) taskDefs.add(task.name);
    const name = unversioned(task);
    if (name !== null) workflows.add(name);
  }
  return { taskDefs: [...taskDefs], workflows: [...workflows] };
}

/**
 * `taskDefs` has the found definitions of `lookupsOf`; a task without one gets a default definition. `newest` has versions by name; a
 * workflow that is missing in it is looked up again when its task starts.
 */
export function snapshot(
  definition: WorkflowDef,
  taskDefs: ReadonlyMap<string, TaskDef>,
  newest: ReadonlyMap<string, number> = new Map(),
): WorkflowDef {
  return atOnce(snapshotInSlices(definition, taskDefs, newest));
}

export function* snapshotInSlices(
  definition: WorkflowDef,
  taskDefs: ReadonlyMap<string, TaskDef>,
  newest: ReadonlyMap<string, number>,
): Sliced<WorkflowDef> {
  let completed = 0;
  const complete: Complete = function* (tasks) {
    const whole: WorkflowTask[] = [];
    for (const task of tasks) {
      if (++completed % sliceItems === 0) yield;
      whole.push({ ...task, ...definitionFor(task, taskDefs), ...(yield* branches(task, complete)), ...versioned(task, newest) });
    }
    return whole;
  };
  const tasks = yield* complete(definition.tasks);
  // Serialising a large definition has a separate slice.
  if (completed >= sliceItems) yield;
  return { ...definition, tasks };
}

type Complete = (tasks: readonly WorkflowTask[]) => Sliced<WorkflowTask[]>;

/**
 * The approximate number of characters of task definitions that `snapshot` writes into the definition. A task definition counts once for
 * every task with its name. Stops above `max`.
 */
export function snapshotChars(definition: WorkflowDef, taskDefs: ReadonlyMap<string, TaskDef>, max: number): number {
  const sizes = new Map([...taskDefs].map(([name, taskDef]) => [name, textSize(taskDef as unknown as Json, max)]));
  let chars = 0;
  for (const task of everyTask(definition.tasks)) {
    if (task.taskDefinition === undefined) chars += sizes.get(task.name) ?? 0;
    if (chars > max) break;
  }
  return chars;
}

function definitionFor(task: WorkflowTask, taskDefs: ReadonlyMap<string, TaskDef>): { taskDefinition?: TaskDef } {
  if (task.taskDefinition !== undefined) return {};
  const { name } = task;
  return { taskDefinition: taskDefs.get(name) ?? (task.type === "SIMPLE" ? defaultTaskDef(name) : bareTaskDef(name)) };
}

function* branches(task: WorkflowTask, complete: Complete): Sliced<Partial<WorkflowTask>> {
  const { decisionCases, defaultCase, forkTasks, loopOver } = task;
  const cases: [string, WorkflowTask[]][] = [];
  for (const [key, list] of Object.entries(decisionCases ?? {})) cases.push([key, yield* complete(list)]);
  const otherwise = yield* complete(defaultCase ?? []);
  const forks: WorkflowTask[][] = [];
  for (const list of forkTasks ?? []) forks.push(yield* complete(list));
  const body = yield* complete(loopOver ?? []);
  return {
    ...(loopOver && { loopOver: body }),
    ...(decisionCases && { decisionCases: Object.fromEntries(cases) }),
    ...(defaultCase && { defaultCase: otherwise }),
    ...(forkTasks && { forkTasks: forks }),
  };
}

function unversioned(task: WorkflowTask): string | null {
  const param = task.subWorkflowParam;
  if (task.type !== "SUB_WORKFLOW" || !param?.name || param.version || param.workflowDefinition !== undefined) return null;
  return param.name.includes("${") ? null : param.name;
}

/** An inline definition is completed when its own run starts. */
function versioned(task: WorkflowTask, newest: ReadonlyMap<string, number>): Partial<WorkflowTask> {
  const version = newest.get(unversioned(task) ?? "");
  return version === undefined ? {} : { subWorkflowParam: { ...task.subWorkflowParam, version } };
}

/** A run's input: the given values, and the definition's values for absent keys. */
export function startInput(definition: WorkflowDef, given: JsonObject): JsonObject {
  const input = { ...given };
  for (const key of Object.keys(definition.inputTemplate))
    if (!Object.hasOwn(input, key)) setOwn(input, key, definition.inputTemplate[key] as Json);
  return input;
}

/** What a SUB_WORKFLOW's record starts, from its input. */
export interface ChildRequest {
  readonly name: string | null;
  /** Null for the newest. */
  readonly version: number | null;
  /** Not parsed yet, because it may come from a run's own data. */
  readonly definition: Json;
  readonly input: JsonObject;
  readonly taskToDomain: { readonly [taskType: string]: string } | null;
  readonly priority: number | null;
}

export function childRequestOf(input: Json): ChildRequest {
  const given = isObject(input) ? (input as JsonObject) : {};
  const version = numberOf(given.subWorkflowVersion);
  const priority = numberOf(given.priority);
  return {
    name: typeof given.subWorkflowName === "string" && given.subWorkflowName !== "" ? given.subWorkflowName : null,
    version: Number.isInteger(version) && version > 0 ? version : null,
    definition: given.subWorkflowDefinition ?? null,
    input: childInput(given),
    taskToDomain: isObject(given.subWorkflowTaskToDomain) ? domainsOf(given.subWorkflowTaskToDomain as JsonObject) : null,
    priority: Number.isInteger(priority) ? Math.min(Math.max(priority, 0), 99) : null,
  };
}

/** NaN for absent values, and for values that are not numbers: JavaScript cannot convert every object. */
function numberOf(given: Json | undefined): number {
  return given === undefined || given === null || !isScalar(given) ? Number.NaN : Number(given);
}

function domainsOf(given: JsonObject): { [taskType: string]: string } {
  const domains: { [taskType: string]: string } = {};
  for (const [taskType, domain] of Object.entries(given)) if (domain !== null) setOwn(domains, taskType, javaText(domain));
  return domains;
}

/** A child with an inline definition is marked as such, as in Conductor. */
export function childInput(given: JsonObject): JsonObject {
  const input = isObject(given.workflowInput) ? (given.workflowInput as JsonObject) : {};
  return isObject(given.subWorkflowDefinition) ? { ...input, _systemMetadata: { dynamic: true } } : input;
}
