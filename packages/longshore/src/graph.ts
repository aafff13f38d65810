// Static workflows written in code. `graph()` calls its builder once, when the workflow is defined. The builder gets references instead of
// values, and its calls become a graph. A reference has the type of its value, so a misspelt field is a compile error.

import { type Debounce, debounceOf } from "./core/debounce.ts";
import { type Duration, durationMs } from "./core/duration.ts";
import { LongshoreError } from "./core/errors.ts";
import { type EventTrigger, triggersOf } from "./core/event-trigger.ts";
import { type JsonSchema, publishedSchema } from "./core/schema/json-schema.ts";
import { jsonSchemaOf, type Schema } from "./core/schema/schema.ts";
import { type StartLimit, startLimitOf } from "./core/start-limit.ts";
import type { Task } from "./core/task.ts";
import { type TaskStepOptions, taskStepSettings } from "./core/task-step.ts";
import { shown } from "./core/text.ts";
import { timeOf } from "./core/time-of.ts";
import type { MapSource, SleepSource, StepSource, Value, WorkflowSource } from "./protocols/longshore/dialect/source.ts";
import { type Arg, isReference, type Known, type Ref, reference, stepOf, toValue } from "./reference.ts";
import type { Workflow } from "./workflow-value.ts";

/** The options of one step of a workflow. */
export interface StepOptions extends TaskStepOptions {
  /** The step's name, unique in the workflow. Default: the task's name, with a number when it is used again. */
  id?: string;
  /** Steps that must succeed first although their results are not used. */
  after?: readonly Ref<unknown>[];
  /**
   * `first-part`: the step does not wait for the end of steps in `after` whose results it does not use. It starts when each of them has
   * emitted its first part (`ctx.emit`), and reads further parts with `ctx.parts`. Default: all of them must have ended.
   */
  startWhen?: "first-part";
  /** When this is false, the step and all steps that depend on it are skipped. */
  when?: Ref<boolean> | boolean;
  /** Start even when a step that this one waits for did not succeed; the result of that step is then null. */
  always?: boolean;
}

/** The options of a step that runs another workflow. */
export type RunStepOptions = Pick<StepOptions, "id" | "after" | "when" | "always" | "totalTimeout">;

/** The options of `g.map()`. Those of a step are for each of its tasks, except `totalTimeout`, which is for all of them together. */
export interface MapOptions extends Omit<StepOptions, "startWhen"> {
  /** How many of the tasks run at once. Default: as many as workers take. */
  concurrency?: number;
}

/** Makes the input of each task from references. */
type EachInput = (item: never, index: never) => unknown;

/** The options of a step that waits. */
export type WaitOptions = Pick<StepOptions, "id" | "after" | "when" | "always">;

/** The options of a step that waits for a signal. */
export interface WaitForSignalOptions<Value = unknown> extends WaitOptions {
  /**
   * What the value must fit. One that does not fit is noted in the log of the step, which waits for the next signal of this name. Steps read the value
   * as the sender sent it.
   */
  schema?: Schema<Value, unknown>;
  /** The step fails when no signal has come after this time. Default: it waits until the run ends. */
  timeout?: Duration;
}

/** Adds steps to a workflow; the first argument of the function that `graph()` calls. */
export interface GraphBuilder {
  /** Adds a step that runs `task`; returns a reference to its result. */
  step<Input, Output>(task: Task<Input, Output>, input: Arg<NoInfer<Input>>, options?: StepOptions): Ref<Output>;
  /** Adds a step that runs another workflow to its end. The server defines that workflow before this one. */
  run<Input, Output>(workflow: Workflow<Input, Output>, input: Arg<NoInfer<Input>>, options?: RunStepOptions): Ref<Output>;
  /** The same for a workflow that is defined on the server under this name, in any language. */
  run<Output = unknown>(workflow: string, input: unknown, options?: RunStepOptions): Ref<Output>;
  /**
   * Adds one task for each item of a list with at most 20,000 items. Returns a reference to the list of their results, in the same order.
   * The number of items is known only when the step starts. `input` makes the input of each task from its item and its place in the list,
   * from 0. When one of them fails, the others are cancelled and the step fails.
   */
  map<Item, Input, Output>(
    list: Ref<readonly Item[]> | readonly Arg<Item>[],
    task: Task<Input, Output>,
    options: MapOptions & { input: (item: Ref<Item>, index: Ref<number>) => Arg<NoInfer<Input>> },
  ): Ref<Output[]>;
  /** The same for a list whose items are the inputs of the tasks. */
  map<Input, Output>(list: Arg<readonly NoInfer<Input>[]>, task: Task<Input, Output>, options?: MapOptions): Ref<Output[]>;
  /**
   * Adds a pause: of this length from its start, or until a time. Steps that name it in `after` wait for its end. No worker and no slot is
   * held meanwhile, and it survives restarts.
   */
  sleep(time: Arg<Duration> | { readonly until: Date | Arg<string | number> }, options?: WaitOptions): Ref<unknown>;
  /**
   * Adds a step that waits for a signal of this name, also one that was sent before; returns a reference to its value. Each signal ends one
   * step, oldest first. No worker and no slot is held meanwhile.
   */
  signal<Value = unknown>(name: Arg<string>, options?: WaitForSignalOptions<Value>): Ref<Value>;
}

/** A graph as a value: define it with `server.define()`, or start it with `server.start()`. */
export interface GraphWorkflow<Input = unknown, Output = unknown> extends Workflow<Input, Output> {
  readonly source: WorkflowSource;
}

/** The options of `graph()`. */
export interface GraphOptions<Input = unknown> {
  /** The schema of the input: a start with another input is refused. Steps read the input as the caller sent it. */
  input?: Schema<Input, unknown>;
  /** The limit of the whole run. */
  timeout?: Duration;
  /** The events that start a run: their payload is its input. `client.emit()` sends one. */
  on?: EventTrigger | readonly EventTrigger[];
  /** How many runs may be open at once, such as `{ key: "customer.id" }`: one for each customer, and further ones wait for their turn. */
  limit?: StartLimit;
  /** Starts that come close together become one run, with the input of the last: `{ key: "customer.id", period: "30s", atMost: "5m" }`. */
  debounce?: Debounce;
}

/**
 * Makes a workflow whose steps are known before it starts. `build` is called once, before any value exists: it adds steps with `g.step()`
 * and passes references between them. Its return value is the output of a run. Throws LONGSHORE_BAD_DEFINITION for a mistake in the graph.
 */
export function graph<Input, Result>(
  name: string,
  build: (g: GraphBuilder, input: Ref<Input>) => Result,
  options: GraphOptions<Input> = {},
): GraphWorkflow<Input, Known<Result>> {
  if (!/^[\w./:@-]{1,200}$/.test(name)) {
    throw bad(`The workflow name ${JSON.stringify(name)} is not usable, expected 1 to 200 letters, digits and . _ - / : @`, "name");
  }
  const { g, steps, uses } = builder(name);
  const output = build(g, reference({ path: [] }) as Ref<Input>);
  if (isPromise(output)) throw asyncBuilder(name, output);
  const source: WorkflowSource = { name, steps, output: output === undefined ? null : toValue(output) };
  if (options.timeout !== undefined) source.timeoutMs = durationMs(options.timeout, `timeout of workflow ${name}`);
  const inputSchema = publishedSchema(jsonSchemaOf(options.input, "input"));
  if (inputSchema !== undefined) source.inputSchema = inputSchema;
  if (options.on !== undefined) source.events = triggersOf(options.on, name);
  if (options.debounce !== undefined) source.debounce = debounceOf(options.debounce, name);
  if (options.limit !== undefined) source.limit = startLimitOf(options.limit, name);
  return Object.freeze({
    name,
    source,
    ...(uses.size === 0 ? {} : { uses: [...uses] }),
    ...(options.input === undefined ? {} : { input: options.input }),
  });
}

function builder(name: string): { g: GraphBuilder; steps: StepSource[]; uses: ReadonlySet<Workflow> } {
  const steps: StepSource[] = [];
  const uses = new Set<Workflow>();
  const taken = new Set<string>();
  const counts = new Map<string, number>();
  const freeId = (called: string) => {
    for (let count = (counts.get(called) ?? 0) + 1; ; count++) {
      counts.set(called, count);
      const id = count === 1 ? called : `${called}-${count}`;
      if (!taken.has(id)) return id;
    }
  };
  const add = (
    what: Pick<StepSource, "task" | "workflow" | "sleep" | "signal" | "signalSchema" | "map">,
    input: unknown,
    options: StepOptions,
    called: string,
  ) => {
    const id = options.id ?? freeId(called);
    if (taken.has(id)) throw bad(`Workflow ${name} has two steps called ${id}: give one of them another id.`, `steps.${id}`);
    taken.add(id);
    steps.push({ id, ...what, input: toValue(input), ...stepSettings(options, id) });
    return reference({ step: id, path: [] }) as never;
  };
  const g: GraphBuilder = {
    step: (task, input, options = {}) => add({ task: task.name }, input, { ...options, ...taskDefaults(task, options) }, task.name),
    run: (child: Workflow | string, input: unknown, options: RunStepOptions = {}) => {
      const workflow = typeof child === "string" ? child : childName(name, child);
      if (typeof child !== "string") uses.add(child);
      return add({ workflow }, input, options, workflow);
    },
    map: (list: unknown, task: Task, { input, concurrency, ...options }: MapOptions & { input?: EachInput } = {}) => {
      const map: MapSource = { task: task.name };
      if (input !== undefined)
        map.each = toValue(input(reference({ item: "value", path: [] }) as never, reference({ item: "index", path: [] }) as never));
      if (concurrency !== undefined) map.concurrency = wholeNumber(concurrency, `concurrency of a map in workflow ${name}`);
      return add({ map }, list, { ...options, ...taskDefaults(task, options) }, task.name);
    },
    sleep: (time, options = {}) => add({ sleep: sleepSource(time, name) }, null, options, "sleep"),
    signal: (signal, { timeout, schema, ...options } = {}) =>
      add(
        { signal: signalSource(signal, name), ...(schema === undefined ? {} : { signalSchema: signalSchemaOf(schema, signal, name) }) },
        null,
        { ...options, totalTimeout: timeout },
        typeof signal === "string" && !isReference(signal) ? signal : "signal",
      ),
  };
  return { g, steps, uses };
}

/** The settings of a step that its task has a default for. */
function taskDefaults(task: Pick<Task, "retry" | "timeoutMs">, { retry = task.retry, timeout = task.timeoutMs }: StepOptions) {
  return { retry, timeout };
}

function wholeNumber(value: number, what: string): number {
  if (Number.isInteger(value) && value >= 1) return value;
  throw bad(`${what} is ${shown(value)}, expected a whole number from 1.`, "concurrency");
}

function childName(parent: string, child: Partial<Workflow> | undefined): string {
  if (typeof child?.name === "string" && child.source !== undefined) return child.name;
  if (typeof (child as Partial<Task> | undefined)?.handle === "function")
    throw bad(`g.run() in workflow ${parent} got the task ${child?.name}, expected a workflow: use g.step() for a task.`, "workflow");
  const got = child === undefined ? "undefined" : shown(child);
  const hint = child === undefined ? " Do two files import each other?" : "";
  throw bad(`g.run() in workflow ${parent} got ${got}, expected a workflow or the name of one.${hint}`, "workflow");
}

/** A time that is known now is checked now. */
function sleepSource(time: Parameters<GraphBuilder["sleep"]>[0], workflow: string): SleepSource {
  if (isReference(time)) return { for: toValue(time) };
  if (typeof time !== "object") return { for: durationMs(time, `sleep of workflow ${workflow}`) };
  const { until } = time as { until: Date | Arg<string | number> };
  if (isReference(until)) return { until: toValue(until) };
  const at = until instanceof Date ? until.getTime() : timeOf(until);
  if (Number.isFinite(at)) return { until: at };
  throw bad(
    `g.sleep() in workflow ${workflow} has until ${shown(until)}, expected a Date, milliseconds since 1970 or a text such as 2030-01-31T09:00:00Z.`,
    "sleep",
  );
}

function signalSource(signal: Arg<string>, workflow: string): Value {
  if (isReference(signal)) return toValue(signal);
  if (typeof signal === "string" && signal !== "") return signal;
  throw bad(`g.signal() in workflow ${workflow} got ${shown(signal)}, expected the name of a signal.`, "signal");
}

/** The server checks the value, without the code of the schema. */
function signalSchemaOf<Value>(schema: Schema<Value, unknown>, signal: Arg<string>, workflow: string): JsonSchema {
  const published = publishedSchema(jsonSchemaOf(schema as Schema, "input"));
  if (published !== undefined) return published;
  const which = typeof signal === "string" ? ` ${signal}` : "";
  const why = "its library cannot write it as JSON Schema (draft-07), and the server checks the value without your code";
  throw bad(`g.signal() in workflow ${workflow} got a schema for the signal${which}, but ${why}.`, "schema");
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && !isReference(value) && typeof (value as { then?: unknown }).then === "function";
}

/** An async builder may also reject, which must not end the process: its caller gets this error instead. */
function asyncBuilder(name: string, promise: PromiseLike<unknown>): LongshoreError {
  promise.then(undefined, () => {});
  return bad(
    `The builder of workflow ${name} is async: graph() calls it once, before any value exists, and cannot wait for it. Remove async and ` +
      `await, or use workflow(${JSON.stringify(name)}, async (w, input) => ...) for a function that awaits its steps.`,
    "build",
  );
}

function bad(message: string, field: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", message, { detail: { field } });
}

function stepSettings(options: StepOptions, id: string): Partial<StepSource> {
  const { after, startWhen, when, always } = options;
  return {
    ...(after === undefined ? {} : { after: after.map((ref) => stepOf(ref, id)) }),
    ...(startWhen === undefined ? {} : { startWhen }),
    ...(when === undefined ? {} : { when: toValue(when) }),
    ...(always ? { always } : {}),
    ...taskStepSettings(options, id),
  };
}
