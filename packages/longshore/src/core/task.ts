// A task is a name and a plain function. Declaring one registers nothing: it is a value, handed to `work()`.

import type { Backoff } from "./backoff.ts";
import type { Context, Deferral } from "./context.ts";
import { type Duration, durationMs } from "./duration.ts";
import { LongshoreError } from "./errors.ts";
import { pathPattern } from "./path-pattern.ts";
import { type JsonSchema, publishedSchema } from "./schema/json-schema.ts";
import { jsonSchemaOf, type Schema } from "./schema/schema.ts";

/** The options of `task()`. */
export interface TaskOptions<Returned = unknown, Output = unknown> {
  /** Checks the result of the handler and returns what callers get; a value that does not match fails the task permanently. */
  output?: Schema<Returned, Output>;
  /** One sentence for people, published where a protocol has a place for it. */
  description?: string;
  /** The handler's signal aborts after this long, and the attempt counts as failed. */
  timeout?: Duration;
  /** What a workflow written in code uses for steps of this task by default. */
  retry?: RetryHint;
  /** How many calls of this task run at once in one worker, on protocols that poll for each task by its name. */
  concurrency?: number;
  /** Labels that a worker with this task advertises, on protocols that match by labels. */
  labels?: readonly string[];
  /**
   * Where the task is found on protocols that find tasks by path; the default is `/` and its name. `{x}` takes a segment, `{*x}` the rest.
   */
  path?: string;
  /** JSON Schemas to publish for a handler that has no schema of its own; `longshore schema` writes them from its signature. */
  schemas?: TaskSchemas;
  /** Where the handler runs; the default is the setting of `work()`. */
  isolate?: Isolate;
  /** The module that exports this task, as in `import.meta.url`; a thread or process loads it from there. */
  module?: string;
}

/** JSON Schemas of what a task takes and returns. */
export interface TaskSchemas {
  readonly input?: JsonSchema;
  readonly output?: JsonSchema;
}

/**
 * Where a handler runs. `inline`: in the worker's own thread, as asynchronous handlers should. `thread`: in a thread of its own while it
 * runs, so that it may compute for any time. `process`: in a process of the task's own, whose crash harms nothing else. `auto`: in
 * a thread unless it is an async function.
 */
export type Isolate = "inline" | "thread" | "process" | "auto";

/** How often and with which pauses a failed task is retried. */
export interface RetryHint {
  /** How many times a failed attempt is followed by another; 0 = never. */
  readonly limit: number;
  readonly backoff?: Backoff;
}

/** `Input` is what a caller sends, `Output` what a caller gets back. */
export interface Task<Input = unknown, Output = unknown> {
  readonly name: string;
  /** Written as a method so that tasks of any input may be in one list. */
  handle(input: Input, context: Context): Output | Deferral | Promise<Output | Deferral>;
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  readonly description: string | undefined;
  readonly timeoutMs: number | undefined;
  readonly retry: RetryHint | undefined;
  readonly concurrency: number | undefined;
  readonly labels: readonly string[];
  readonly path: string | undefined;
  readonly schemas: TaskSchemas | undefined;
  readonly isolate: Isolate | undefined;
  readonly module: string | undefined;
}

/** A handler's result without the promise and without "later". */
export type TaskOutput<Result> = Exclude<Awaited<Result>, Deferral>;

/** Longer names fit no protocol's label or queue name. */
const nameCharsMax = 200;

/** What a handler may return: the input of its output schema, or anything without one. */
type Fitting<Accepted> = Accepted | Deferral | Promise<Accepted | Deferral>;

/** What callers receive: the output of the schema, or the result of the handler when there is none. */
type Received<Output, Result> = unknown extends Output ? TaskOutput<Result> : Output;

/**
 * Makes a task: a name and the function that runs for it. Pass it to `work()` and to steps of a workflow. With an `input` schema, callers send
 * the input of the schema and the handler receives its output.
 */
export function task<Input, Parsed, Accepted, Output, Result extends Fitting<Accepted>>(
  name: string,
  handler: (input: Parsed, context: Context) => Result,
  options: TaskOptions<Accepted, Output> & { input: Schema<Input, Parsed> },
): Task<Input, Received<Output, Result>>;
/** Makes a task without an `input` schema: the parameter type of the handler is the input type of the task. */
export function task<Input, Accepted, Output, Result extends Fitting<Accepted>>(
  name: string,
  handler: (input: Input, context: Context) => Result,
  options?: TaskOptions<Accepted, Output> & { input?: undefined },
): Task<Input, Received<Output, Result>>;
export function task(
  name: string,
  handler: (input: never, context: Context) => unknown,
  options: Omit<TaskOptions, "output"> & { input?: unknown; output?: unknown } = {},
): Task {
  checkName(name);
  return Object.freeze({
    name,
    handle: handler as Task["handle"],
    input: options.input as Schema | undefined,
    output: options.output as Schema | undefined,
    description: options.description,
    timeoutMs: options.timeout === undefined ? undefined : durationMs(options.timeout, `timeout of task ${name}`),
    retry: options.retry,
    concurrency: options.concurrency === undefined ? undefined : checkConcurrency(options.concurrency, name),
    labels: [...(options.labels ?? [])],
    path: options.path === undefined ? undefined : pathPattern(options.path, `path of task ${name}`).text,
    schemas: options.schemas,
    isolate: options.isolate,
    module: options.module,
  });
}

/** Spaces and control characters would break `@name` commands, labels and queue names. */
export function isTaskName(name: unknown): name is string {
  return typeof name === "string" && name.length <= nameCharsMax && /^[\w./:-]+$/.test(name);
}

function checkName(name: string): void {
  if (isTaskName(name)) return;
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `The task name ${JSON.stringify(name)} is not usable, expected 1 to ${nameCharsMax} letters, digits and . _ - / :`,
    { detail: { field: "name", expected: "letters, digits and . _ - / :" } },
  );
}

function checkConcurrency(concurrency: number, name: string): number {
  if (Number.isInteger(concurrency) && concurrency >= 1) return concurrency;
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `concurrency of task ${name} is ${JSON.stringify(concurrency)}, expected a whole number from 1.`,
    { detail: { field: "concurrency" } },
  );
}

/** What a protocol may publish about a task. */
export interface TaskDescription {
  name: string;
  description?: string;
  inputSchema?: JsonSchema;
  outputSchema?: JsonSchema;
}

/** `strict` closes the schemas to fields that they do not name. A side that JSON Schema cannot describe is left out. */
export function describeTask(subject: Task, options: { readonly strict?: boolean } = {}): TaskDescription {
  const inputSchema = publishedSchema(jsonSchemaOf(subject.input, "input") ?? subject.schemas?.input, options);
  const outputSchema = publishedSchema(jsonSchemaOf(subject.output, "output") ?? subject.schemas?.output, options);
  return {
    name: subject.name,
    ...(subject.description === undefined ? {} : { description: subject.description }),
    ...(inputSchema === undefined ? {} : { inputSchema }),
    ...(outputSchema === undefined ? {} : { outputSchema }),
  };
}
