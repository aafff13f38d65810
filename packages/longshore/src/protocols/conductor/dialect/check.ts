// Checks of a whole workflow definition. The messages are Conductor's own where it has one; those about operators that are not served, and
// about tasks that could never end, are ours.

import { Script } from "node:vm";
import { toError } from "../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { type Sliced, sliceItems } from "../../../core/slices/slice-work.ts";
import { shown } from "../../../core/text.ts";
import { compileValue, expressionsOf } from "./expression.ts";
import { javaText } from "./java-text.ts";
import { everyTask, type WorkflowDef, type WorkflowTask } from "./model.ts";
import { isScript, isUnserved } from "./operators.ts";
import { unsupportedSink } from "./sinks.ts";
import { checkName, secondsMax } from "./task-def.ts";
import { Unsupported, type Violations } from "./violation.ts";
import { parseDuration, parseUntil } from "./wait.ts";

type Bad = (message: string | Unsupported) => void;

/** How many values of inputs are checked in one slice. A value with an expression takes some microseconds. */
const valuesInSlice = 1_000;

export function* checkWorkflow(
  definition: WorkflowDef,
  path: string,
  options: { mayBeEmpty: boolean },
  violations: Violations,
): Sliced<void> {
  if (!definition.name) violations.add(`${path}.name`, "WorkflowDef name cannot be null or empty", definition.name);
  else checkName(definition.name, `${path}.name`, "WorkflowDef name", violations);
  if (definition.tasks.length === 0 && !options.mayBeEmpty) violations.add(`${path}.tasks`, "WorkflowTask list cannot be empty");
  if (definition.schemaVersion !== 2)
    violations.add(`${path}.schemaVersion`, "workflowDef schemaVersion: 2 is only supported", definition.schemaVersion);
  for (const field of ["version", "timeoutSeconds"] as const) {
    const value = definition[field];
    if (Math.abs(value) > secondsMax) violations.add(`${path}.${field}`, `must be at most ${secondsMax}`, value);
  }
  yield* checkReferences(definition, path, violations);
  let checked = 0;
  for (const [task, at] of everyTaskAt(definition.tasks, `${path}.tasks`)) {
    if (++checked % sliceItems === 0) yield;
    checkTask(task, at, violations);
  }
}

/** Each task before those inside it, with its place. */
function* everyTaskAt(tasks: readonly WorkflowTask[], path: string): Generator<[WorkflowTask, string]> {
  for (const [at, task] of tasks.entries()) {
    const here = `${path}[${at}]`;
    yield [task, here];
    for (const [key, branch] of Object.entries(task.decisionCases ?? {})) yield* everyTaskAt(branch, `${here}.decisionCases[${key}]`);
    yield* everyTaskAt(task.defaultCase ?? [], `${here}.defaultCase`);
    for (const [fork, branch] of (task.forkTasks ?? []).entries()) yield* everyTaskAt(branch, `${here}.forkTasks[${fork}]`);
    yield* everyTaskAt(task.loopOver ?? [], `${here}.loopOver`);
  }
}

function* checkReferences(definition: WorkflowDef, path: string, violations: Violations): Sliced<void> {
  const names = new Set<string>();
  const twice = new Set<string>();
  for (const { taskReferenceName: name } of everyTask(definition.tasks)) {
    if (name && names.has(name)) twice.add(name);
    names.add(name);
  }
  for (const name of twice)
    violations.add(path, `taskReferenceName: ${name} should be unique across tasks for a given workflowDefinition: ${definition.name}`);
  for (const task of everyTask(definition.tasks)) {
    for (const name of task.type === "JOIN" ? (task.joinOn ?? []) : [])
      if (!names.has(name)) violations.add(path, `JOIN ${task.taskReferenceName} joins on ${name}, which is not a task of this definition`);
  }
  // Only top-level tasks, as in Conductor: inside branches an unknown name reads as null.
  for (const [at, task] of definition.tasks.entries()) {
    if (at % sliceItems === sliceItems - 1) yield;
    yield* checkInputs(task.inputParameters, task, names, path, violations);
  }
}

function* checkInputs(
  input: JsonObject,
  task: WorkflowTask,
  names: ReadonlySet<string>,
  path: string,
  violations: Violations,
): Sliced<void> {
  const open: [string, Json][] = Object.entries(input);
  let read = 0;
  // The list grows during the loop. Entries are not removed from its front, because this would move all others each time.
  for (const [key, value] of open) {
    if (++read % valuesInSlice === 0) yield;
    if (Array.isArray(value)) for (const item of value) open.push([key, item]);
    else if (isObject(value)) for (const entry of Object.entries(value as JsonObject)) open.push(entry);
    else if (typeof value === "string") checkInput(key, value, task, names, path, violations);
  }
}

function checkInput(
  key: string,
  value: string,
  task: WorkflowTask,
  names: ReadonlySet<string>,
  path: string,
  violations: Violations,
): void {
  for (const expression of expressionsOf(compileValue(value))) {
    if (expression.kind === "blank") violations.add(path, `key: ${key} input parameter value:  is not valid`);
    if (expression.kind !== "path") continue;
    const { lookup } = expression;
    if (lookup.kind === "unreadable") violations.add(path, `key: ${key} input parameter value: ${lookup.text} is not valid`);
    if (lookup.kind !== "entry" || lookup.name === "workflow" || names.has(lookup.name)) continue;
    violations.add(
      path,
      `taskReferenceName: ${lookup.name} for given task: ${task.name} input value: ${key} of input parameter: ${value} is not defined in workflow definition.`,
    );
  }
}

export function checkTask(task: WorkflowTask, path: string, violations: Violations): void {
  if (!task.name) violations.add(`${path}.name`, "WorkflowTask name cannot be empty or null", task.name);
  else checkName(task.name, `${path}.name`, "WorkflowTask name", violations);
  if (!task.taskReferenceName)
    violations.add(`${path}.taskReferenceName`, "WorkflowTask taskReferenceName name cannot be empty or null", task.taskReferenceName);
  else checkName(task.taskReferenceName, `${path}.taskReferenceName`, "WorkflowTask taskReferenceName", violations);
  if (task.type === "") violations.add(`${path}.type`, "WorkTask type cannot be null or empty", task.type);
  else checkName(task.type, `${path}.type`, "WorkflowTask type", violations);
  if (task.startDelay < 0) violations.add(`${path}.startDelay`, "must be greater than or equal to 0", task.startDelay);
  for (const field of ["startDelay", "retryCount"] as const) {
    const value = task[field] ?? 0;
    if (value > secondsMax || (field === "retryCount" && value < 0))
      violations.add(`${path}.${field}`, `must be from 0 to ${secondsMax}`, value);
  }
  checkType(task, (message) => violations.add(path, message));
}

function checkType(task: WorkflowTask, bad: Bad): void {
  const required = (field: string) => bad(`${field} field is required for taskType: ${task.type} taskName: ${task.name}`);
  if (isUnserved(task.type)) return bad(new Unsupported(task.type, `, taskReferenceName: ${task.taskReferenceName}`));
  switch (task.type) {
    case "SWITCH":
      return checkSwitch(task, required, bad);
    case "DECISION":
      return checkDecision(task, bad);
    case "INLINE":
      return task.inputParameters.evaluatorType === "python" ? bad(noPython(task)) : undefined;
    case "DO_WHILE":
      return checkLoop(task, required, bad);
    case "FORK_JOIN_DYNAMIC":
      return checkDynamicFork(task, bad);
    case "HTTP":
      return checkHttp(task, bad);
    case "JSON_JQ_TRANSFORM":
      return Object.hasOwn(task.inputParameters, "queryExpression") ? undefined : required("queryExpression");
    case "DYNAMIC":
      return task.dynamicTaskNameParam === undefined ? required("dynamicTaskNameParam") : undefined;
    case "FORK_JOIN":
      if ((task.forkTasks ?? []).length === 0) bad(`forkTasks should have atleast one task for taskType: FORK_JOIN taskName: ${task.name}`);
      return;
    case "SUB_WORKFLOW":
      return task.subWorkflowParam === undefined ? required("subWorkflowParam") : undefined;
    case "EVENT":
      return checkEvent(task, required, bad);
    case "TERMINATE":
      return checkTerminate(task, bad);
    case "WAIT":
      return checkWait(task, bad);
  }
}

function checkSwitch(task: WorkflowTask, required: (field: string) => void, bad: Bad): void {
  if (task.evaluatorType === undefined) required("evaluatorType");
  else if (task.evaluatorType === "python") bad(noPython(task));
  else if (task.expression === undefined) required("expression");
  else if (isScript(task.evaluatorType)) checkScript(task.expression, task, bad);
  checkCases(task, bad);
}

function checkDecision(task: WorkflowTask, bad: Bad): void {
  if (!task.caseValueParam && !task.caseExpression)
    bad(`caseValueParam or caseExpression field is required for taskType: DECISION taskName: ${task.name}`);
  checkCases(task, bad);
}

function checkCases(task: WorkflowTask, bad: Bad): void {
  if (Object.keys(task.decisionCases ?? {}).length === 0)
    bad(`decisionCases should have atleast one task for taskType: ${task.type} taskName: ${task.name}`);
}

function noPython(task: WorkflowTask): Unsupported {
  const expected = `, expected javascript, graaljs or value-param, taskReferenceName: ${task.taskReferenceName}`;
  return new Unsupported(`${task.type} with evaluatorType python`, expected);
}

/** Only parses the code: nothing of it runs. */
function checkScript(code: string, task: WorkflowTask, bad: Bad): void {
  try {
    new Script(code);
  } catch (error) {
    const { name, message } = toError(error);
    bad(`Expression is not well formatted: ${name}: ${message}, taskType: ${task.type} taskName ${task.name}`);
  }
}

function checkLoop(task: WorkflowTask, required: (field: string) => void, bad: Bad): void {
  const isList = task.items !== undefined || Object.hasOwn(task.inputParameters, "_items");
  if (!isList && !task.loopCondition) required("loopCondition");
  if ((task.loopOver ?? []).length === 0) required("loopOver");
  if (task.evaluatorType === "python") bad(noPython(task));
  for (const inner of everyTask(task.loopOver ?? []))
    if (inner.type === "DO_WHILE")
      bad(new Unsupported(`DO_WHILE ${inner.taskReferenceName} inside DO_WHILE ${task.taskReferenceName}`, ": put it into a SUB_WORKFLOW"));
}

function checkDynamicFork(task: WorkflowTask, bad: Bad): void {
  if (Object.hasOwn(task.inputParameters, "forkTaskInputs")) return;
  for (const field of ["dynamicForkTasksParam", "dynamicForkTasksInputParamName"] as const)
    if (task[field] === undefined) bad(`${field} field is required for taskType: FORK_JOIN_DYNAMIC taskName: ${task.name}`);
}

/** The request may also come from the template of the task's own definition. One without a uri or a method fails the task. */
function checkHttp(task: WorkflowTask, bad: Bad): void {
  const given = { ...task.taskDefinition?.inputTemplate, ...task.inputParameters };
  if (!["http_request", "uri", "method"].some((field) => Object.hasOwn(given, field)))
    bad(`inputParameters.http_request or inputParameters.uri field is required for taskType: HTTP taskName: ${task.name}`);
}

function checkEvent(task: WorkflowTask, required: (field: string) => void, bad: Bad): void {
  if (!task.sink) return required("sink");
  const why = unsupportedSink(task.sink);
  if (why !== undefined)
    bad(new Unsupported(`EVENT with the sink ${shown(task.sink)}`, `: ${why}, taskReferenceName: ${task.taskReferenceName}`));
}

function checkTerminate(task: WorkflowTask, bad: Bad): void {
  if (task.optional) bad(`terminate task cannot be optional, taskName: ${task.name}`);
  const status = task.inputParameters.terminationStatus;
  if (status !== "COMPLETED" && status !== "FAILED" && status !== "TERMINATED")
    bad(`terminate task must have an terminationStatus parameter and must be set to COMPLETED or FAILED, taskName: ${task.name}`);
}

function checkWait(task: WorkflowTask, bad: Bad): void {
  const duration = javaText(task.inputParameters.duration ?? "").trim();
  const until = javaText(task.inputParameters.until ?? "").trim();
  if (duration !== "" && until !== "") bad("Both 'duration' and 'until' specified. Please provide only one input");
  if (duration !== "" && !duration.startsWith("${")) {
    // Conductor's text for any invalid duration.
    if (parseDuration(duration) === null) bad("Either date or duration is passed as null ");
  } else if (until !== "" && !until.startsWith("${") && parseUntil(until) === null) bad("Unable to parse date ");
}
