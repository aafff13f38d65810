// The settings of a worker, checked once at the start.

import { type Clock, systemClock } from "../core/clock.ts";
import { type Duration, durationMs } from "../core/duration.ts";
import { LongshoreError } from "../core/errors.ts";
import type { Isolate, Task } from "../core/task.ts";
import type { IsolatedTask } from "./isolate/isolates.ts";
import { type Logger, stderrLogger } from "./notices.ts";
import type { Tracer } from "./telemetry.ts";
import type { Transport } from "./transport.ts";

export interface RunnerOptions {
  /** The handlers of this worker. Default: none, for a worker that only runs durable functions or commands. */
  readonly tasks?: readonly Task[];
  /** How many tasks run at the same time. Default: 10, or the sum of the protocol's own limits for these tasks. */
  readonly slots?: number;
  /** How long running tasks may continue after `stop()` or SIGTERM. Default: the transport's setting, else 20 s. */
  readonly drain?: Duration;
  /** How long a handler may take to end after its signal aborted. Default: 5 s. After that, its slot is free for other work. */
  readonly abortGrace?: Duration;
  /** Where handlers run when their task does not set it. Default: `inline`. */
  readonly isolate?: Isolate;
  /** The module that exports the tasks which run in threads or processes, such as `import.meta.resolve("./tasks.js")`. */
  readonly module?: string;
  /** The memory limit for the objects of one thread or process of handlers, in megabytes. Calls that exceed it fail and may be retried. */
  readonly isolateMemoryMb?: number;
  readonly logger?: Logger | false;
  /** The tracer for executions. Default: none. */
  readonly tracer?: Tracer;
  readonly clock?: Clock;
  /** Returns a number in [0, 1); used for jitter. */
  readonly random?: () => number;
}

export interface RunnerConfig {
  readonly tasks: ReadonlyMap<string, Task>;
  /** Undefined when the option is not set. */
  readonly slots: number | undefined;
  /** Undefined when the option is not set. */
  readonly drainMs: number | undefined;
  readonly abortGraceMs: number;
  /** The tasks whose handlers run in a thread or process. */
  readonly isolated: ReadonlyMap<string, IsolatedTask>;
  readonly isolateMemoryMb: number | undefined;
  readonly logger: Logger;
  readonly tracer: Tracer | undefined;
  readonly clock: Clock;
  readonly random: () => number;
}

/** Handlers mostly wait for other services; ten at once keep a machine busy without overloading it. */
const slotsDefault = 10;
/** Each slot needs timers and connections; beyond this, run more processes. */
const slotsMax = 10_000;
/** Drain, abort grace and the last reports together stay below the 30 s that common supervisors allow. */
const drainMsDefault = 20_000;
const abortGraceMsDefault = 5_000;

export function runnerConfig(options: RunnerOptions): RunnerConfig {
  return {
    tasks: tasksByName(options.tasks ?? []),
    slots: options.slots === undefined ? undefined : checkSlots(options.slots),
    drainMs: options.drain === undefined ? undefined : durationMs(options.drain, "drain"),
    abortGraceMs: durationMs(options.abortGrace ?? abortGraceMsDefault, "abortGrace"),
    isolated: isolatedTasks(options),
    isolateMemoryMb: options.isolateMemoryMb,
    logger: options.logger === false ? () => {} : (options.logger ?? stderrLogger),
    tracer: options.tracer,
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
  };
}

function tasksByName(tasks: readonly Task[]): ReadonlyMap<string, Task> {
  const byName = new Map<string, Task>();
  for (const each of tasks) {
    if (byName.has(each.name)) {
      throw new LongshoreError("LONGSHORE_BAD_CONFIG", `Two tasks are named "${each.name}", expected each name once.`, {
        detail: { field: "tasks" },
      });
    }
    byName.set(each.name, each);
  }
  return byName;
}

function isolatedTasks({
  tasks = [],
  isolate: isolateDefault = "inline",
  module: moduleDefault,
}: RunnerOptions): ReadonlyMap<string, IsolatedTask> {
  const isolated = new Map<string, IsolatedTask>();
  for (const task of tasks) {
    const isolate = chosenIsolate(task, isolateDefault);
    if (isolate === "inline") continue;
    const module = task.module ?? moduleDefault;
    if (module === undefined) {
      const message = `Task "${task.name}" is to run in a ${isolate} of its own, which needs the module that exports it: set \`module: import.meta.url\` in its options, or \`module\` in those of work().`;
      throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: "module", expected: "a file URL" } });
    }
    isolated.set(task.name, { isolate, module });
  }
  return isolated;
}

function chosenIsolate(task: Task, isolateDefault: Isolate): Exclude<Isolate, "auto"> {
  const wanted = task.isolate ?? isolateDefault;
  if (wanted === "inline" || wanted === "thread" || wanted === "process") return wanted;
  if (wanted === "auto") return isAsync(task.handle) ? "inline" : "thread";
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `isolate is ${JSON.stringify(wanted)}, expected "inline", "thread", "process" or "auto".`,
    {
      detail: { field: "isolate" },
    },
  );
}

/** An async function yields to the event loop while it waits. Any other function may block the event loop until its end. */
function isAsync(handler: Task["handle"]): boolean {
  return Object.prototype.toString.call(handler) === "[object AsyncFunction]";
}

/** The default number of slots of a worker. */
export function defaultSlots(tasks: ReadonlyMap<string, Task>, transports: readonly Transport[]): number {
  if (transports.some((transport) => transport.slotsFor === undefined)) return slotsDefault;
  const wanted = transports.reduce((sum, transport) => sum + (transport.slotsFor?.(tasks) ?? 0), 0);
  return Math.min(Math.max(1, wanted), slotsMax);
}

/** The default drain time of a worker: the longest setting of its transports. */
export function defaultDrainMs(transports: readonly Transport[]): number {
  const drains = transports.flatMap(({ drainMs }) => (drainMs === undefined ? [] : [drainMs]));
  return drains.length === 0 ? drainMsDefault : Math.max(...drains);
}

function checkSlots(slots: number): number {
  if (Number.isInteger(slots) && slots >= 1 && slots <= slotsMax) return slots;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `slots is ${slots}, expected a whole number from 1 to ${slotsMax}.`, {
    detail: { field: "slots" },
  });
}
