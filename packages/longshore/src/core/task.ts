// A task is a name and a plain function. Declaring a task registers nothing: it is a value that is passed to `work()`.

import type { Backoff } from "./backoff.ts";
import type { Context, Deferral } from "./context.ts";
import { type Duration, durationMs } from "./duration.ts";
import { LongshoreError } from "./errors.ts";
import type { Jsonify } from "./json/jsonify.ts";
import { pathPattern } from "./path-pattern.ts";
import { type JsonSchema, publishedSchema } from "./schema/json-schema.ts";
import { jsonSchemaOf, type Schema } from "./schema/schema.ts";

/** The options of `task()`. */
export interface TaskOptions<Returned = unknown, Output = unknown> {
  /** Validates the result of the handler and returns what callers receive; a value that does not match fails the task permanently. */
  output?: Schema<Returned, Output>;
  /** One sentence for people, published where the protocol supports it. */
  description?: string;
  /** The handler's signal aborts after this long, and the attempt counts as failed. */
  timeout?: Duration;
  /** The default retry policy for steps of this task in workflows that are written in code. */
  retry?: RetryHint;
  /** How many calls of this task run at once in one worker, on protocols that poll for each task by its name. */
  concurrency?: number;
  /** Labels that a worker with this task advertises, on protocols that match by labels. */
  labels?: readonly string[];
  /** The path of the task, on protocols that find tasks by path. Default: `/` and its name. `{x}` matches a segment, `{*x}` the rest. */
  path?: string;
  /** JSON Schemas to publish for a handler that has no schema of its own; `longshore schema` writes them from its signature. */
  schemas?: TaskSchemas;
  /** Where the handler runs. Default: the setting of `work()`. */
  isolate?: Isolate;
  /** The module that exports this task, as in `import.meta.url`; a thread or process imports it. */
  module?: string;
}

/** JSON Schemas of the input and the output of a task. */
export interface TaskSchemas {
  readonly input?: JsonSchema;
  readonly output?: JsonSchema;
}

/**
 * Where a handler runs. `inline`: in the worker's own thread, the right choice for asynchronous handlers. `thread`: in a separate thread
 * while it runs, so that it may compute for any time. `process`: in a separate process for this task, whose crash affects nothing else.
 * `auto`: `inline` for an async function, else `thread`.
 */
export type Isolate = "inline" | "thread" | "process" | "auto";

/** How often and with which delays a failed task is retried. */
export interface RetryHint {
  /** The maximum number of retries; 0 = never. */
  readonly limit: number;
  readonly backoff?: Backoff;
}

/** `Input` is what a caller sends, `Output` what a caller receives: the JSON form of what the handler returns. */
export interface Task<Input = unknown, Output = unknown> {
  readonly name: string;
  /** Declared as a method so that tasks with different inputs fit in one list. */
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

/** A handler's result, without the promise and without deferrals. */
export type TaskOutput<Result> = Exclude<Awaited<Result>, Deferral>;

/** The limit of labels and queue names in the protocols. */
const nameCharsMax = 200;

/** What a handler may return: the input of its output schema, or any value without a schema. */
type Fitting<Accepted> = Accepted | Deferral | Promise<Accepted | Deferral>;

/** What callers receive, as JSON: the output of the schema, or the result of the handler when there is none. */
type Received<Output, Result> = Jsonify<unknown extends Output ? TaskOutput<Result> : Output>;

/**
 * Makes a task: a name and the function that runs for it. Pass it to `work()` and to steps of a workflow. With an `input` schema, callers
 * send the input of the schema and the handler receives its output.
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

/** With `strict`, the schemas refuse fields that they do not name. A schema that JSON Schema cannot express is left out. */
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
