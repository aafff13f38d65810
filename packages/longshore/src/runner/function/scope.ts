// What a durable function can do: the `w` of `workflow(name, async (w, input) => ...)`. Each method gives a command to the run, or returns a
// value that is the same in every replay.

import { type Backoff, backoffMs, stepBackoff } from "../../core/backoff.ts";
import { pause, systemClock } from "../../core/clock.ts";
import { type Duration, durationMs } from "../../core/duration.ts";
import { LongshoreError, TerminalError, toError } from "../../core/errors.ts";
import type { Json } from "../../core/json/json.ts";
import type { Jsonify } from "../../core/json/jsonify.ts";
import { toJson } from "../../core/json/to-json.ts";
import { type Schema, validate } from "../../core/schema/schema.ts";
import type { Task } from "../../core/task.ts";
import { type TaskStepOptions, taskStepSettings } from "../../core/task-step.ts";
import { type Command, definesCharsMax, definesMax } from "../../core/turn.ts";
import { type Member, reportedDefinitions } from "../../core/workflow-family.ts";
import type { FunctionReplay } from "./replay.ts";
import type { Asked, LocalResult } from "./replay-parts.ts";
import { handled } from "./unawaited-promises.ts";

/** The options of a step of a durable function. */
export interface CommandOptions extends TaskStepOptions {
  /** The name that people see. Default: the name of the task, with a number when it is used again. */
  id?: string;
}

/** The options of a child run. */
export interface ChildOptions {
  /** The name that people see. Default: the name of the workflow. */
  id?: string;
  /** The limit of the child run. */
  totalTimeout?: Duration;
}

/** The options of a wait for a signal. */
export interface SignalOptions<Value> {
  /**
   * Checks the value. A value that does not fit is written to the log of the run, and the function waits for the next signal of this name.
   */
  schema?: Schema<unknown, Value>;
  /** After this time the wait fails with a StepError whose code is LONGSHORE_DEADLINE. Default: it never does. */
  timeout?: Duration;
}

/** A workflow, by its value or its name. */
interface Named<Input, Output> {
  readonly name: string;
  readonly source: object;
  readonly uses?: readonly Member<object>[];
  readonly types?: { input: Input; output: Output };
}

/**
 * What a durable function can do. Results of commands are in the journal of the run. After a crash the function runs again from its start,
 * and each command returns what it returned before. So code whose result can differ from call to call (the clock, random numbers, the
 * network, files) belongs in a task or in `local`.
 */
export interface FunctionScope {
  /** The id of the run. */
  readonly runId: string;
  /** Aborts when the run is cancelled, or this worker loses it. For the calls of `local`. */
  readonly cancelled: AbortSignal;
  /** Runs a task on any worker that has it, and returns its output. Throws StepError when it fails. */
  step<Input, Output>(task: Task<Input, Output>, input: NoInfer<Input>, options?: CommandOptions): Promise<Output>;
  /** The same by the name of the task: a handler of any worker of any protocol of this server. */
  call<Output = unknown>(task: string, input: unknown, options?: CommandOptions): Promise<Output>;
  /** Runs another workflow as a child, and returns its output. A child ends with its parent. A server that does not have it defines it. */
  run<Input, Output>(workflow: Named<Input, Output>, input: NoInfer<Input>, options?: ChildOptions): Promise<Output>;
  run<Output = unknown>(workflow: string, input: unknown, options?: ChildOptions): Promise<Output>;
  /** Runs a task, or calls a function that gives commands, for each item. Returns the results in order. At most `concurrency` run at once. */
  map<Item, Output>(
    items: readonly Item[],
    each: Task<Item, Output> | ((item: Item, index: number) => Promise<Output>),
    options?: CommandOptions & { concurrency?: number },
  ): Promise<Output[]>;
  /** Waits until a signal of this name is sent to the run, or was sent before, and returns its value. Each signal is received once. */
  signal<Value = unknown>(name: string, options?: SignalOptions<Value>): Promise<Value>;
  /** The values of all signals of this name, as they arrive. */
  signals<Value = unknown>(name: string, options?: SignalOptions<Value>): AsyncIterable<Value>;
  /** Waits for this long, or until this time. The wait survives restarts and holds no slot. */
  sleep(until: Duration | Date): Promise<void>;
  /**
   * Runs `fn` on this worker and stores its result in the journal. A replay gets that result and does not run `fn`. If the worker crashes
   * before the result is stored, `fn` runs again. It keeps the slot of the worker while it runs. The result is stored as JSON: a `Date`
   * comes back as text. It is stored before the next side effect begins, together with the commands that follow it, or with the end of the
   * function.
   */
  local<Output>(name: string, fn: (signal: AbortSignal) => Output | Promise<Output>, options?: LocalOptions): Promise<Jsonify<Output>>;
  /** Shows a value to clients under this name, in the status of the run. */
  set(key: string, value: unknown): void;
  /** The time of the newest result, or of the start: the same in every replay. */
  now(): Date;
  /** A number in [0, 1) that is the same in every replay. */
  random(): number;
  /** A UUID that is the same in every replay, and different in every run. */
  uuid(): string;
  /** Ends this pass of the function and begins the next one with another input and an empty journal, in the same run. */
  continueAs(input: unknown): never;
  /**
   * Marks a change of the code. Returns `newest` in a run that reaches this place for the first time. A replay returns the same number as
   * then, or 0 when the mark did not exist then.
   */
  version(change: string, newest: number): number;
  /** Adds a line to the log of the run; not repeated in a replay. */
  log(entry: string | { readonly [field: string]: unknown }): void;
}

/** The options of `local`. */
export interface LocalOptions {
  /** Repeats `fn` when it throws, in the same turn. */
  retry?: { limit: number; backoff?: Backoff };
}

/** What the scope needs from the turn that is in progress. */
export interface ScopeDeps {
  readonly runId: string;
  readonly replay: FunctionReplay;
  readonly random: () => number;
  readonly cancelled: AbortSignal;
  log(entry: string | { readonly [field: string]: unknown }): void;
}

export function makeScope({ runId, replay, random, cancelled, log }: ScopeDeps): FunctionScope {
  const shownId = ids();
  const definesOf = definitions();
  const ask = (make: () => Asked): Promise<Json> => {
    try {
      return replay.ask(make());
    } catch (error) {
      return quiet(Promise.reject(toError(error)));
    }
  };
  const call = (task: string, input: unknown, options: CommandOptions = {}): Promise<Json> =>
    ask(() => ({
      ...{ kind: "step", name: task, input: jsonOf(input, `step ${task}`), ...taskStepSettings(options, task) },
      shown: shownId(options.id ?? task),
    }));
  const step: FunctionScope["step"] = (task, input, options = {}) =>
    call(task.name, input, {
      ...options,
      retry: options.retry ?? task.retry,
      timeout: options.timeout ?? task.timeoutMs,
    }) as Promise<never>;
  const note: FunctionScope["log"] = (entry) => {
    if (!replay.isReplaying) log(entry);
  };
  const signalOf = async (name: string, { schema, timeout }: SignalOptions<unknown> = {}): Promise<never> => {
    const limitMs = timeout === undefined ? null : durationMs(timeout, `timeout of signal ${name}`);
    const begunAt = replay.now;
    for (;;) {
      const limit = limitMs === null ? {} : { totalMs: Math.max(1, limitMs - (replay.now - begunAt)) };
      const value = await replay.ask({ kind: "signal", name, shown: shownId(name), ...limit });
      if (schema === undefined) return value as never;
      try {
        return (await validate(schema, value, "input", `The value of signal ${name} does not fit its schema`)) as never;
      } catch (error) {
        // A sender's mistake must not cost the run.
        if (!(error instanceof TerminalError)) throw error;
        note(`${error.message} The function waits for another value.`);
      }
    }
  };
  const signal: FunctionScope["signal"] = (name, options) => quiet(signalOf(name, options as SignalOptions<unknown>));
  return {
    runId,
    cancelled,
    step,
    call: (task, input, options) => call(task, input, options) as Promise<never>,
    run: (workflow: string | Named<unknown, unknown>, input: unknown, options: ChildOptions = {}) => {
      const name = typeof workflow === "string" ? workflow : workflow.name;
      const limit = () =>
        options.totalTimeout === undefined ? {} : { totalMs: durationMs(options.totalTimeout, `totalTimeout of ${name}`) };
      return ask(() => ({
        ...{ kind: "run", name, input: jsonOf(input, `workflow ${name}`), ...limit(), ...definesOf(workflow) },
        shown: shownId(options.id ?? name),
      })) as Promise<never>;
    },
    map: (items, each, { concurrency, ...options } = {}) => {
      const one = typeof each === "function" ? each : (item: never) => step(each as Task<never, never>, item, options);
      return quiet(mapAll(items, one as (item: (typeof items)[number], index: number) => Promise<never>, concurrency));
    },
    signal,
    signals: (name, options) => ({
      async *[Symbol.asyncIterator]() {
        for (;;) yield await signal(name, options);
      },
    }),
    sleep: (until) => ask(() => ({ kind: "sleep", name: "", ...sleepOf(until), shown: shownId("sleep") })) as Promise<never>,
    local: (name, fn, options) => replay.local(name, () => tryLocal(() => fn(cancelled), options, cancelled)) as Promise<never>,
    set: (key, value) => replay.set(key, toJson(value)),
    now: () => new Date(replay.now),
    random,
    uuid: () => uuidOf(random),
    continueAs: (input) => replay.continueAs(jsonOf(input, "continueAs")),
    version: (change, newest) => replay.version(change, newest),
    log: note,
  };
}

/** The definitions that go with a child run: once for each workflow, since all children of a name have one definition. */
function definitions(): (workflow: string | Named<unknown, unknown>) => Pick<Command, "defines"> {
  const sent = new Set<string>();
  return (workflow) => {
    if (typeof workflow === "string" || sent.has(workflow.name)) return {};
    sent.add(workflow.name);
    const defines = reportedDefinitions(workflow);
    const chars = defines.reduce((sum, { source }) => sum + source.length, 0);
    return defines.length > definesMax || chars > definesCharsMax ? {} : { defines };
  };
}

/** A promise that may be rejected before the function awaits it. */
function quiet<Value>(promise: Promise<Value>): Promise<Value> {
  handled(promise);
  return promise;
}

function jsonOf(input: unknown, of: string): Json {
  try {
    return toJson(input);
  } catch (error) {
    const { message } = toError(error);
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `The input of ${of} is not JSON: ${message}`, { cause: error });
  }
}

/** The server computes the end of a duration, from the moment when it gets the command. */
function sleepOf(until: Duration | Date): Pick<Command, "until" | "forMs"> {
  if (!(until instanceof Date)) return { forMs: durationMs(until, "sleep") };
  const at = until.getTime();
  if (Number.isFinite(at)) return { until: at };
  throw new LongshoreError("LONGSHORE_BAD_INPUT", "sleep got an invalid Date, expected a valid one, or a duration such as 30m.");
}

/** Names that people see, each once: `price`, `price-2`. */
function ids(): (name: string) => string {
  const uses = new Map<string, number>();
  return (name) => {
    const use = (uses.get(name) ?? 0) + 1;
    uses.set(name, use);
    return use === 1 ? name : `${name}-${use}`;
  };
}

async function mapAll<Item, Output>(
  items: readonly Item[],
  one: (item: Item, index: number) => Promise<Output>,
  concurrency = Number.POSITIVE_INFINITY,
): Promise<Output[]> {
  if (!(concurrency >= 1))
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", `concurrency of map is ${concurrency}, expected a number from 1.`);
  const results: Output[] = new Array<Output>(items.length);
  let next = 0;
  const work = async () => {
    for (let at = next++; at < items.length; at = next++) {
      try {
        results[at] = await one(items[at] as Item, at);
      } catch (error) {
        // No further item begins.
        next = items.length;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, work));
  return results;
}

async function tryLocal(fn: () => unknown, { retry }: LocalOptions = {}, signal: AbortSignal): Promise<LocalResult> {
  for (let tries = 1; ; tries++) {
    try {
      return { output: toJson(await fn()) };
    } catch (error) {
      if (tries > (retry?.limit ?? 0) || signal.aborted) return { error: toError(error).message || toError(error).name };
      // Not `random()` of the function: a replay does not run this, so its later numbers would differ.
      await pause(systemClock, backoffMs(retry?.backoff ?? stepBackoff, tries, Math.random()), signal);
    }
  }
}

function uuidOf(random: () => number): string {
  const bytes = Array.from({ length: 16 }, () => Math.floor(random() * 256));
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  const text = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20)}`;
}

/** Numbers that depend on the text alone (sfc32, seeded with a hash of it). */
export function seededRandom(text: string): () => number {
  let [a, b, c, d] = [0x9e3779b9, 0x243f6a88, 0xb7e15162, 1];
  for (let at = 0; at < text.length; at++) {
    a = Math.imul(a ^ text.charCodeAt(at), 0x01000193);
    b = Math.imul(b + a, 0x85ebca6b) ^ (b >>> 13);
    c = Math.imul(c ^ b, 0xc2b2ae35) + at;
  }
  const next = () => {
    const sum = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + sum) | 0;
    return (sum >>> 0) / 4_294_967_296;
  };
  for (let mixed = 0; mixed < 12; mixed++) next();
  return next;
}
