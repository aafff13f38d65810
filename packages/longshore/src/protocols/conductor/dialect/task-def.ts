// Reads and checks task definitions. The messages are Conductor's own.

import { anything, choice, type Field, type FieldTable, flag, map, optionalWhole, readFields, text, texts, whole } from "./fields.ts";
import type { TaskDef } from "./model.ts";
import { type Checked, Violations } from "./violation.ts";

/** As long as the columns of the reference's own databases; names are used in URLs, lanes and keys. */
const nameCharsMax = 255;
/** Seconds of any delay or timeout; Conductor keeps them as 32 bit numbers. */
export const secondsMax = 2_147_483_647;
/** Maximum number in one request; more is a mistake of a program. */
const taskDefsMax = 1_000;

export const auditFields: FieldTable = {
  ownerApp: text,
  createTime: whole(0),
  updateTime: whole(0),
  createdBy: text,
  updatedBy: text,
};

const schemaFields: FieldTable = { ...auditFields, name: text, version: whole(1), type: text, data: anything, externalRef: text };

/** A schema in another document, or only its name. */
export const schema: Field = (given, path, violations) =>
  given === undefined || given === null ? undefined : (readFields(schemaFields, given, path, violations) ?? undefined);

const taskDefFields: FieldTable = {
  ...auditFields,
  name: text,
  description: text,
  retryCount: whole(3),
  timeoutSeconds: whole(0),
  inputKeys: texts,
  outputKeys: texts,
  runtimeMetadata: texts,
  timeoutPolicy: choice(["RETRY", "TIME_OUT_WF", "ALERT_ONLY"], "TIME_OUT_WF"),
  retryLogic: choice(["FIXED", "EXPONENTIAL_BACKOFF", "LINEAR_BACKOFF"], "FIXED"),
  retryDelaySeconds: whole(60),
  responseTimeoutSeconds: whole(3_600),
  concurrentExecLimit: optionalWhole,
  inputTemplate: map,
  rateLimitPerFrequency: whole(0),
  rateLimitFrequencyInSeconds: (given, path, violations) => whole(1)(given ?? undefined, path, violations),
  isolationGroupId: text,
  executionNameSpace: text,
  ownerEmail: text,
  pollTimeoutSeconds: optionalWhole,
  backoffScaleFactor: (given, path, violations) => whole(1)(given ?? undefined, path, violations),
  maxRetryDelaySeconds: whole(0),
  backoffJitterMs: whole(0),
  baseType: text,
  totalTimeoutSeconds: whole(0),
  taskStatusListenerEnabled: flag(true),
  inputSchema: schema,
  outputSchema: schema,
  enforceSchema: flag(false),
};

/** `path` is what Conductor calls the argument, such as `updateTaskDef.arg0`. */
export function parseTaskDef(source: unknown, path: string): Checked<TaskDef> {
  const violations = new Violations();
  const value = readTaskDef(source, path, violations);
  return value === null || violations.list.length > 0 ? { violations: violations.list } : { value };
}

/** The body of `POST /metadata/taskdefs`. It is accepted completely or not at all. */
export function parseTaskDefs(source: unknown, path: string): Checked<TaskDef[]> {
  const violations = new Violations();
  if (!Array.isArray(source)) violations.add(path, "must be a list of task definitions");
  else if (source.length === 0) violations.add(path, "TaskDefList is empty");
  else if (source.length > taskDefsMax) violations.add(path, `has ${source.length} task definitions, at most ${taskDefsMax} are allowed`);
  if (violations.list.length > 0) return { violations: violations.list };
  const values = (source as unknown[]).map((item, at) => readTaskDef(item, `${path}[${at}]`, violations));
  return violations.list.length > 0 ? { violations: violations.list } : { value: values.filter((value) => value !== null) };
}

/** Null when it is not an object. Mistakes are added to `violations`. */
function readTaskDef(source: unknown, path: string, violations: Violations): TaskDef | null {
  const definition = readFields<TaskDef>(taskDefFields, source, path, violations);
  if (definition !== null) checkTaskDef(definition, path, violations);
  return definition;
}

function checkTaskDef(definition: TaskDef, path: string, violations: Violations): void {
  const { name, responseTimeoutSeconds, timeoutSeconds, totalTimeoutSeconds, backoffScaleFactor } = definition;
  if (!name) violations.add(`${path}.name`, "TaskDef name cannot be null or empty", name);
  else checkName(name, `${path}.name`, "TaskDef name", violations);
  for (const field of ["retryCount", "pollTimeoutSeconds", "backoffJitterMs", "maxRetryDelaySeconds"] as const) {
    // As in Conductor's response, the 0 is the limit and not the value.
    if ((definition[field] ?? 0) < 0) violations.add(`${path}.${field}`, `TaskDef ${field}: 0 must be >= 0`, definition[field]);
  }
  if (responseTimeoutSeconds < 1) {
    const message = `TaskDef responseTimeoutSeconds: ${responseTimeoutSeconds} should be minimum 1 second`;
    violations.add(`${path}.responseTimeoutSeconds`, message, responseTimeoutSeconds);
  }
  if (backoffScaleFactor < 1)
    violations.add(`${path}.backoffScaleFactor`, "Backoff scale factor. Applicable for LINEAR_BACKOFF", backoffScaleFactor);
  if (timeoutSeconds > 0 && responseTimeoutSeconds > timeoutSeconds) {
    const message = `TaskDef: ${name} responseTimeoutSeconds: ${responseTimeoutSeconds} must be less than timeoutSeconds: ${timeoutSeconds}`;
    violations.add(path, message);
  }
  if (totalTimeoutSeconds > 0 && timeoutSeconds > totalTimeoutSeconds) {
    const message = `TaskDef: ${name} timeoutSeconds: ${timeoutSeconds} must be less than or equal to totalTimeoutSeconds: ${totalTimeoutSeconds}`;
    violations.add(path, message);
  }
  checkBounds(definition, path, violations);
}

/**
 * An inline definition in a workflow's task. Conductor does not check it, not even its name. So only definitions that cannot run are
 * refused here.
 */
export function inlineTaskDef(source: unknown, name: string, path: string, violations: Violations): TaskDef {
  const definition = readFields<TaskDef>(taskDefFields, source, path, violations) ?? defaultTaskDef(name);
  checkBounds(definition, path, violations);
  return definition.name ? definition : { ...definition, name };
}

/** Conductor's numbers have 32 bits. Negative numbers that it accepts mean 0. */
function checkBounds(definition: TaskDef, path: string, violations: Violations): void {
  for (const [field, value] of Object.entries(definition)) {
    const bounded = Object.hasOwn(taskDefFields, field) && !Object.hasOwn(auditFields, field);
    if (bounded && typeof value === "number" && Math.abs(value) > secondsMax)
      violations.add(`${path}.${field}`, `must be at most ${secondsMax}`, value);
  }
}

export function checkName(name: string, path: string, what: string, violations: Violations): void {
  const fault = nameFault(name, what);
  if (fault !== undefined) violations.add(path, fault);
}

/**
 * Names are used in URLs and keys: no control characters, valid Unicode, and a maximum length. A dynamic fork gets its names from data. A
 * name that the store refuses would keep its run open.
 */
export function nameFault(name: string, what: string): string | undefined {
  if (name.length > nameCharsMax) return `${what} has ${name.length} characters, at most ${nameCharsMax} are allowed`;
  if (!name.isWellFormed()) return `${what} has half of a surrogate pair, expected valid Unicode`;
  return hasControl(name) ? `${what} has a control character` : undefined;
}

function hasControl(name: string): boolean {
  for (let at = 0; at < name.length; at++) if (name.charCodeAt(at) < 0x20 || name.charCodeAt(at) === 0x7f) return true;
  return false;
}

/** The definition of a worker's task without its own definition. */
export function defaultTaskDef(name: string): TaskDef {
  return readFields<TaskDef>(taskDefFields, { name }, "", new Violations()) as TaskDef;
}

/** The definition of any other task without its own definition: no retries, and a lease that never expires. */
export function bareTaskDef(name: string): TaskDef {
  return { ...defaultTaskDef(name), retryCount: 0, responseTimeoutSeconds: 0 };
}

/** True for an unregistered definition: one without this timeout would have been refused. */
export function isBare(definition: TaskDef): boolean {
  return definition.responseTimeoutSeconds === 0;
}
