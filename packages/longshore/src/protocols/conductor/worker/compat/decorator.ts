// `worker(options)`: a decorator for methods, in both generations of TypeScript's decorators, and a wrapper for a function. Each use adds a
// worker to the list when it is evaluated.
//
// A method keeps its `this`. The newer decorators run when an instance is created, and the newest instance is used. The older decorators do
// not run then, so the class is instantiated when its first task arrives.

import { registerWorker } from "./registry.ts";
import { generateSchemaFromClass } from "./schema.ts";
import { isAsync } from "./task-adapter.ts";
import type { RegisteredWorker, Task, WorkerMethod, WorkerOptions } from "./types.ts";

/** A type that both `ClassMethodDecoratorContext` and the SDK's own narrower type satisfy. */
export interface MethodContext {
  readonly kind: string;
  readonly name: string | symbol;
  addInitializer?(initializer: (this: unknown) => void): void;
}

/** A step of a workflow that calls this worker. */
export interface SimpleTaskDef {
  name: string;
  taskReferenceName: string;
  type: "SIMPLE";
  inputParameters: Record<string, unknown>;
}

/** The options of a workflow step that calls a decorated worker. */
export interface StepOptions {
  taskRefName: string;
  inputParameters?: Record<string, unknown>;
}

/** A declared function also makes steps: `greet({ taskRefName: "first", inputParameters: { name: "Ada" } })`. */
export type WorkerFunction<Method extends WorkerMethod> = Method & ((step: StepOptions) => SimpleTaskDef);

/** What `worker()` returns: a decorator for methods, which can also be called with a function. */
export interface WorkerDecorator {
  <Method extends (task: Task) => unknown>(method: Method, context: MethodContext): Method | undefined;
  <Method extends WorkerMethod>(handler: Method): WorkerFunction<Method>;
  (target: object, key: string | symbol, descriptor: PropertyDescriptor): PropertyDescriptor | undefined;
}

/** Declares a worker: as a decorator of a method, or as a wrapper of a function. */
export function worker(options: WorkerOptions): WorkerDecorator {
  const decorate = (target: object, second?: MethodContext | string | symbol, descriptor?: PropertyDescriptor): unknown => {
    if (descriptor !== undefined) return decorateLegacy(options, target, descriptor);
    const method = target as WorkerMethod;
    if (typeof second === "object") return decorateMethod(options, method, second);
    register(options, method, () => undefined);
    return stepOr(options.taskDefName, method);
  };
  return decorate as WorkerDecorator;
}

function decorateMethod(options: WorkerOptions, method: WorkerMethod, context: MethodContext): undefined {
  let self: unknown;
  context.addInitializer?.(function (this: unknown) {
    self = this;
  });
  register(options, method, () => self);
}

function decorateLegacy(options: WorkerOptions, target: object, descriptor: PropertyDescriptor): PropertyDescriptor {
  // A static method's target is the class itself.
  const self = typeof target === "function" ? () => target : instanceOf(target);
  register(options, descriptor.value as WorkerMethod, self);
  return descriptor;
}

/** One instance for all methods of a class, by its prototype. */
const instances = new WeakMap<object, object>();

function instanceOf(prototype: object): () => object {
  return () => {
    const known = instances.get(prototype);
    if (known !== undefined) return known;
    const made = new (prototype.constructor as new () => object)();
    instances.set(prototype, made);
    return made;
  };
}

function register(options: WorkerOptions, method: WorkerMethod, self: () => unknown): void {
  const { inputType, outputType, ...rest } = options;
  // A class of fields takes precedence over a schema written by hand.
  const inputSchema = inputType === undefined ? options.inputSchema : generateSchemaFromClass(inputType);
  const outputSchema = outputType === undefined ? options.outputSchema : generateSchemaFromClass(outputType);
  const call = (task: Task) => method.call(self(), task);
  const declared: RegisteredWorker = { ...rest, executeFunction: isAsync(method) ? async (task) => call(task) : call };
  if (inputSchema !== undefined) declared.inputSchema = inputSchema;
  if (outputSchema !== undefined) declared.outputSchema = outputSchema;
  registerWorker(declared);
}

function stepOr(name: string, method: WorkerMethod): unknown {
  return function (this: unknown, argument: Task | StepOptions) {
    if (!("taskRefName" in argument)) return method.call(this, argument as Task);
    return { name, taskReferenceName: argument.taskRefName, type: "SIMPLE", inputParameters: argument.inputParameters ?? {} };
  };
}
