// Workflows written in code, as they are stored: plain JSON, created by `graph()` and compiled by this dialect.

import type { DebounceSource } from "../../../core/debounce.ts";
import type { EventTrigger } from "../../../core/event-trigger.ts";
import type { Json, JsonObject } from "../../../core/json/json.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import type { StartLimit } from "../../../core/start-limit.ts";
import type { TaskStepSettings } from "../../../core/task-step.ts";

/** A place in a value: property names and array indexes. */
export type Path = readonly (string | number)[];

/**
 * A value in which references replace results that are not known yet:
 * `{"$ref": {"step": "greet", "path": ["text"]}}` for a step's output, `{"$ref": {"path": ["name"]}}` for the run's input.
 * An object of the user's own that has the single key `$ref` or `$value` is wrapped as `{"$value": ...}`; its members are values again.
 */
export type Value = Json;

export interface Reference {
  /** Absent for the run's input. */
  step?: string;
  /** Only in `each` of a map: its item, or the place of the item in the list, from 0. */
  item?: "value" | "index";
  path: Path;
}

export interface StepSource extends TaskStepSettings {
  id: string;
  /** A step has one of these: a task, another workflow, a pause, a signal that it waits for, or one task for each item of a list. */
  task?: string;
  workflow?: string;
  sleep?: SleepSource;
  signal?: Value;
  /** Of a step that waits for a signal: what its value must fit. */
  signalSchema?: JsonSchema;
  map?: MapSource;
  /** For a map: the list. */
  input: Value;
  /** Steps that must end first although their results are not used. */
  after?: string[];
  /**
   * With `first-part`, it is enough that steps of `after` whose results are not used have produced a part. Default: all must have ended.
   */
  startWhen?: "first-part";
  when?: Value;
  /** Start even when a step that it waits for did not succeed. */
  always?: boolean;
}

/** A pause, counted from the start of the step: milliseconds or a duration as a text. Or until a time: milliseconds since 1970, or ISO 8601. */
export type SleepSource = { for: Value } | { until: Value };

/** One task for each item. The settings of the step are those of each task, except `totalMs`, which is for all of them together. */
export interface MapSource {
  task: string;
  /** The input of each task. Default: the item. */
  each?: Value;
  /** How many of the tasks may be held at once. Default: any number. */
  concurrency?: number;
}

/** The definition of the child run of a map, made by the dialect when the number of items is known. */
export interface ListSource {
  /** The author's step, without the fields that were already evaluated. */
  step: Omit<StepSource, "input">;
  /** The place of the first item in the whole list. */
  first: number;
  count: number;
  /** True when it has only a part of the items. Its parent is then the child run of the step. */
  isPart?: true;
}

export interface WorkflowSource {
  name: string;
  steps: StepSource[];
  output: Value;
  timeoutMs?: number;
  /** The JSON Schema of its input: a start with an input that does not fit is refused. */
  inputSchema?: JsonSchema;
  /** The events that start a run; their payload is its input. */
  events?: readonly EventTrigger[];
  /** How many runs may be open at once. */
  limit?: StartLimit;
  /** How starts that come close together become one run. */
  debounce?: DebounceSource;
}

/** A durable function, as it is stored: its code is in the workers. */
export interface FunctionSource {
  name: string;
  function: true;
  timeoutMs?: number;
  inputSchema?: JsonSchema;
  events?: readonly EventTrigger[];
  /** How many runs may be open at once. */
  limit?: StartLimit;
  /** How starts that come close together become one run. */
  debounce?: DebounceSource;
}

/** The reference that `value` is, or null. */
export function referenceOf(value: Value): Reference | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const keys = Object.keys(value);
  return keys.length === 1 && keys[0] === "$ref" ? (value.$ref as unknown as Reference) : null;
}

/** Every reference inside a value. */
export function references(value: Value, found: Reference[] = []): Reference[] {
  const reference = referenceOf(value);
  if (reference !== null) found.push(reference);
  else if (Array.isArray(value)) for (const item of value) references(item, found);
  else if (typeof value === "object" && value !== null)
    for (const inner of Object.values(isWrapped(value) ? value.$value : value)) references(inner, found);
  return found;
}

export function isWrapped(value: JsonObject): value is { $value: JsonObject } {
  return "$value" in value && Object.keys(value).length === 1;
}
