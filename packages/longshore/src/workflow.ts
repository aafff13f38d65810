// Durable functions: `workflow(name, async (w, input) => ...)`. A worker runs the function; the server stores its commands and their results.
// After a crash, any worker with the same code runs it again from the journal.

import { type Debounce, debounceOf } from "./core/debounce.ts";
import { type Duration, durationMs } from "./core/duration.ts";
import { LongshoreError } from "./core/errors.ts";
import { type EventTrigger, triggersOf } from "./core/event-trigger.ts";
import type { Jsonify } from "./core/json/jsonify.ts";
import { publishedSchema } from "./core/schema/json-schema.ts";
import { jsonSchemaOf, parseWorkflowInput, type Schema } from "./core/schema/schema.ts";
import { type StartLimit, startLimitOf } from "./core/start-limit.ts";
import type { FunctionSource } from "./protocols/longshore/dialect/source.ts";
import type { FunctionCode } from "./runner/function/driver.ts";
import type { FunctionScope } from "./runner/function/scope.ts";
import type { Workflow } from "./workflow-value.ts";

/** The options of `workflow()`. */
export interface WorkflowOptions<Given = unknown, Input = Given> {
  /**
   * The schema of the input: a start with an input that does not fit is refused. The function gets the result of the schema, with its
   * defaults and transforms. The schema is also applied in each replay, so it must always return the same result, and must not wait for
   * anything.
   */
  input?: Schema<Given, Input>;
  /** The limit of the whole run. */
  timeout?: Duration;
  /** The events that start a run: their payload is its input. `client.emit()` sends one. */
  on?: EventTrigger | readonly EventTrigger[];
  /** How many runs may be open at once, such as `{ key: "customer.id" }`: one for each customer, and further ones wait for their turn. */
  limit?: StartLimit;
  /** Starts that come close together become one run, with the input of the last: `{ key: "customer.id", period: "30s", atMost: "5m" }`. */
  debounce?: Debounce;
  /** The workflows that the function runs with `w.run()`: a server defines them before this one. */
  uses?: readonly Workflow[];
}

/** A durable function as a value: pass it to `work()` and start it with `server.start()` or a client. */
export interface FunctionWorkflow<Input = unknown, Output = unknown> extends Workflow<Input, Output> {
  readonly source: FunctionSource;
  /** The code, for workers. */
  readonly code: FunctionCode;
}

/**
 * Makes a durable function. It may use loops, conditions, `try`, `Promise.all` and helper functions, like any async function. Its calls of
 * `w` are stored in the journal of its run. Between two results it must do the same in every replay. So it must read the time from
 * `w.now()`, and put everything else that may differ into a task or into `w.local()`.
 */
export function workflow<Input, Output, Given = Input>(
  name: string,
  run: (w: FunctionScope, input: Input) => Promise<Output>,
  options: WorkflowOptions<Given, Input> = {},
): FunctionWorkflow<Given, Jsonify<Awaited<Output>>> {
  if (!/^[\w./:-]{1,150}$/.test(name)) {
    const expected = "1 to 150 letters, digits and . _ - / :";
    throw new LongshoreError("LONGSHORE_BAD_DEFINITION", `The workflow name ${JSON.stringify(name)} is not usable, expected ${expected}`, {
      detail: { field: "name", expected },
    });
  }
  if (Object.prototype.toString.call(run) !== "[object AsyncFunction]") {
    const what = `workflow(${JSON.stringify(name)}) got a function that is not async`;
    const todo = "write it as async (w, input) => { ... }, or use graph() for a workflow whose steps are known before it starts";
    throw new LongshoreError("LONGSHORE_BAD_DEFINITION", `${what}: ${todo}.`, { detail: { field: "run", expected: "an async function" } });
  }
  const source: FunctionSource = { name, function: true };
  if (options.timeout !== undefined) source.timeoutMs = durationMs(options.timeout, `timeout of workflow ${name}`);
  const inputSchema = publishedSchema(jsonSchemaOf(options.input, "input"));
  if (inputSchema !== undefined) source.inputSchema = inputSchema;
  if (options.on !== undefined) source.events = triggersOf(options.on, name);
  if (options.debounce !== undefined) source.debounce = debounceOf(options.debounce, name);
  if (options.limit !== undefined) source.limit = startLimitOf(options.limit, name);
  const { uses, input } = options;
  const call = input === undefined ? run : withParsedInput(name, run, input);
  return Object.freeze({
    ...{ name, source, code: { name, call } },
    ...(uses === undefined ? {} : { uses }),
    ...(input === undefined ? {} : { input }),
  });
}

/** Calls the function at once, except when the schema is asynchronous. */
function withParsedInput<Given, Input>(
  name: string,
  run: (w: FunctionScope, input: Input) => Promise<unknown>,
  schema: Schema<Given, Input>,
): FunctionCode["call"] {
  return (w, given) => {
    const input = parseWorkflowInput(name, schema as Schema<unknown, Input>, given);
    return input instanceof Promise ? input.then((parsed) => run(w, parsed)) : run(w, input);
  };
}

/** Whether a workflow is a durable function. */
export function isFunctionWorkflow(workflow: Workflow): workflow is FunctionWorkflow {
  return "code" in workflow;
}
