// Static workflows written in code. `graph()` calls its builder once, at definition time, with references instead of values: the calls of the
// builder become a graph. A reference has the type of its value, so a misspelt field is a compile error.

import type { Backoff } from "./core/backoff.ts";
import { type Duration, durationMs } from "./core/duration.ts";
import { LongshoreError } from "./core/errors.ts";
import type { Json } from "./core/json/json.ts";
import type { Task } from "./core/task.ts";
import type { Path, StepSource, Value, WorkflowSource } from "./protocols/longshore/dialect/source.ts";
import type { Workflow } from "./workflow-value.ts";

declare const stands: unique symbol;

/** A placeholder for a value that will exist when the workflow runs. Its fields are references too. */
export type Ref<T> = { readonly [stands]: T } & (T extends readonly (infer Item)[]
  ? { readonly [index: number]: Ref<Item> }
  : T extends object
    ? { readonly [Key in keyof T]-?: Ref<Exclude<T[Key], undefined>> }
    : unknown);

/** A value that may contain references in place of any of its parts. */
export type Arg<T> =
  | Ref<T>
  | (T extends readonly (infer Item)[] ? readonly Arg<Item>[] : T extends object ? { readonly [Key in keyof T]: Arg<T[Key]> } : T);

/** The type of a builder's result after every reference in it is resolved. */
// biome-ignore lint/suspicious/noConfusingVoidType: a builder that returns nothing has exactly this result.
export type Known<R> = [R] extends [void]
  ? null
  : R extends { readonly [stands]: infer T }
    ? T
    : R extends readonly (infer Item)[]
      ? Known<Item>[]
      : R extends object
        ? { [Key in keyof R]: Known<R[Key]> }
        : R;

/** The options of one step of a workflow. */
export interface StepOptions {
  /** The step's name, unique in the workflow. Default: the task's name, with a number when it is used again. */
  id?: string;
  /** Steps that must succeed first although their results are not used. */
  after?: readonly Ref<unknown>[];
  /**
   * `first-part`: the step starts when each step in `after` whose result is not used has emitted its first part (`ctx.emit`), and reads
   * further parts with `ctx.parts`. Default: all of them must have ended.
   */
  startWhen?: "first-part";
  /** When this is false, the step and all steps that depend on it are skipped. */
  when?: Ref<boolean> | boolean;
  /** Start even when a step that this one waits for did not succeed; the result of that step is then null. */
  always?: boolean;
  retry?: { limit: number; lost?: number; backoff?: Backoff };
  /** The limit of one attempt. */
  timeout?: Duration;
  /** The limit of all attempts together. */
  totalTimeout?: Duration;
  /** How long the step may wait in the queue until a worker takes it. */
  queueTimeout?: Duration;
  /** Smaller runs first. Default: 0. */
  priority?: number;
  /** Only workers with all of these labels take the step. */
  labels?: readonly string[];
  limits?: readonly { key: string; held?: number; rate?: { count: number; window: Duration } }[];
}

/** Adds steps to a workflow; the first argument of the function that `graph()` calls. */
export interface GraphBuilder {
  /** Adds a step that runs `task`; returns a reference to its result. */
  step<Input, Output>(task: Task<Input, Output>, input: Arg<NoInfer<Input>>, options?: StepOptions): Ref<Output>;
  /** Adds a step that runs another workflow to its end. */
  run<Input, Output>(
    workflow: Workflow<Input, Output>,
    input: Arg<NoInfer<Input>>,
    options?: Pick<StepOptions, "id" | "after" | "when" | "always" | "totalTimeout">,
  ): Ref<Output>;
}

/** The options of `graph()`. */
export interface GraphOptions {
  /** The limit of the whole run. */
  timeout?: Duration;
}

/**
 * Makes a workflow whose steps are known before it starts. `build` is called once, before any value exists: it adds steps with `g.step()` and passes references between them. Its
 * return value is the output of a run.
 */
export function graph<Input, Result>(
  name: string,
  build: (g: GraphBuilder, input: Ref<Input>) => Result,
  options: GraphOptions = {},
): Workflow<Input, Known<Result>> {
  if (!/^[\w./:@-]{1,200}$/.test(name)) {
    throw new LongshoreError(
      "LONGSHORE_BAD_DEFINITION",
      `The workflow name ${JSON.stringify(name)} is not usable, expected 1 to 200 letters, digits and . _ - / : @`,
      {
        detail: { field: "name", expected: "letters, digits and . _ - / : @" },
      },
    );
  }
  const steps: StepSource[] = [];
  const output = build(builder(name, steps), reference(undefined, []) as Ref<Input>);
  const source: WorkflowSource = { name, steps, output: output === undefined ? null : toValue(output) };
  if (options.timeout !== undefined) source.timeoutMs = durationMs(options.timeout, `timeout of workflow ${name}`);
  return Object.freeze({ name, source });
}

function builder(name: string, steps: StepSource[]): GraphBuilder {
  const taken = new Set<string>();
  const uses = new Map<string, number>();
  const freeId = (called: string) => {
    for (let use = (uses.get(called) ?? 0) + 1; ; use++) {
      uses.set(called, use);
      const id = use === 1 ? called : `${called}-${use}`;
      if (!taken.has(id)) return id;
    }
  };
  const add = (what: Pick<StepSource, "task" | "workflow">, input: unknown, options: StepOptions, called: string) => {
    const id = options.id ?? freeId(called);
    if (taken.has(id)) {
      throw new LongshoreError("LONGSHORE_BAD_DEFINITION", `Workflow ${name} has two steps called ${id}: give one of them another id.`, {
        detail: { field: `steps.${id}` },
      });
    }
    taken.add(id);
    steps.push({ id, ...what, input: toValue(input), ...stepSettings(options, id) });
    return reference(id, []);
  };
  return {
    step: (task, input, options = {}) => {
      const retry = options.retry ?? task.retry;
      const timeout = options.timeout ?? task.timeoutMs;
      return add({ task: task.name }, input, { ...options, retry, timeout }, task.name) as never;
    },
    run: (child, input, options = {}) => add({ workflow: child.name }, input, options, child.name) as never,
  };
}

function stepSettings(options: StepOptions, id: string): Partial<StepSource> {
  const settings: Partial<StepSource> = {};
  if (options.after !== undefined) settings.after = options.after.map((ref) => stepOf(ref, id));
  if (options.startWhen !== undefined) settings.startWhen = options.startWhen;
  if (options.when !== undefined) settings.when = toValue(options.when);
  if (options.always) settings.always = true;
  if (options.retry !== undefined)
    settings.retry = { failures: options.retry.limit, lost: options.retry.lost, backoff: options.retry.backoff };
  if (options.timeout !== undefined) settings.timeoutMs = durationMs(options.timeout, `timeout of step ${id}`);
  if (options.totalTimeout !== undefined) settings.totalMs = durationMs(options.totalTimeout, `totalTimeout of step ${id}`);
  if (options.queueTimeout !== undefined) settings.claimMs = durationMs(options.queueTimeout, `queueTimeout of step ${id}`);
  if (options.priority !== undefined) settings.priority = options.priority;
  if (options.labels !== undefined) settings.labels = [...options.labels];
  if (options.limits !== undefined) {
    settings.limits = options.limits.map(({ key, held, rate }) => ({
      key,
      held,
      ...(rate === undefined ? {} : { rate: { count: rate.count, windowMs: durationMs(rate.window, `limits of step ${id}`) } }),
    }));
  }
  return settings;
}

const placeOf = Symbol("longshore.reference");
interface Place {
  step: string | undefined;
  path: Path;
}

/** Every property of a reference is a reference one level deeper. A reference can only be passed on; its value cannot be read. */
function reference(step: string | undefined, path: Path): object {
  const place: Place = { step, path };
  return new Proxy(
    {},
    {
      get(_, key) {
        if (key === placeOf) return place;
        // With a `then`, an `await` of the reference would never end. A text made of a reference would always be wrong, so it is refused.
        if (key === "then") return undefined;
        if (typeof key === "symbol" || key === "toJSON") return refuse(place, impossible.get(key) ?? "it cannot be looked at");
        return reference(step, [...path, /^(0|[1-9]\d*)$/.test(key) ? Number(key) : key]);
      },
      has: (_, key) => key === placeOf,
      ownKeys: () => refuse(place, "its fields cannot be listed"),
    },
  );
}

/** The operation that a program attempts when it reads these properties of a reference. */
const impossible: ReadonlyMap<string | symbol, string> = new Map<string | symbol, string>([
  [Symbol.toPrimitive, "no text or number can be made of it"],
  [Symbol.iterator, "its items cannot be gone through"],
  ["toJSON", "no JSON can be made of it"],
]);

function refuse(place: Place, what: string): never {
  const where = [place.step ?? "input", ...place.path].join(".");
  throw new LongshoreError(
    "LONGSHORE_BAD_DEFINITION",
    `${where} is a placeholder for a value that exists only when the workflow runs: ${what} while it is defined. Do that in a task.`,
  );
}

function isReference(value: unknown): value is { [placeOf]: Place } {
  return typeof value === "object" && value !== null && placeOf in value;
}

function stepOf(ref: unknown, id: string): string {
  const step = isReference(ref) ? ref[placeOf].step : undefined;
  if (step === undefined)
    throw new LongshoreError("LONGSHORE_BAD_DEFINITION", `"after" of step ${id} must list results of earlier steps.`, {
      detail: { field: `steps.${id}.after` },
    });
  return step;
}

function toValue(value: unknown): Value {
  if (isReference(value)) {
    const { step, path } = value[placeOf];
    return { $ref: step === undefined ? { path: [...path] } : { step, path: [...path] } };
  }
  if (Array.isArray(value)) return value.map(toValue);
  if (typeof value !== "object" || value === null) return value === undefined ? null : (value as Json);
  if ("toJSON" in value) return JSON.parse(JSON.stringify(value)) as Json;
  const made: { [key: string]: Json } = {};
  for (const [key, part] of Object.entries(value)) if (part !== undefined) made[key] = toValue(part);
  const keys = Object.keys(made);
  return keys.length === 1 && (keys[0] === "$ref" || keys[0] === "$value") ? { $value: made } : made;
}
