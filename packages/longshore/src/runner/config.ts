// The numbers a worker runs by, checked once at the start.

import { type Clock, systemClock } from "../clock.ts";
import { type Duration, durationMs } from "../duration.ts";
import { LongshoreError } from "../errors.ts";
import type { Task } from "../task.ts";
import { type Logger, stderrLogger } from "./notices.ts";

export interface RunnerOptions {
  readonly tasks: readonly Task[];
  /** How many tasks run at the same time; 10 unless told. */
  readonly slots?: number;
  /** How long running tasks may go on after `stop()` or SIGTERM; 20 s unless told. */
  readonly drain?: Duration;
  /** How long a handler may take to end after its signal aborted; 5 s unless told. Then its slot is given to other work. */
  readonly abortGrace?: Duration;
  readonly logger?: Logger | false;
  readonly clock?: Clock;
  /** In [0, 1); for jitter. */
  readonly random?: () => number;
}

export interface RunnerConfig {
  readonly tasks: ReadonlyMap<string, Task>;
  readonly slots: number;
  readonly drainMs: number;
  readonly abortGraceMs: number;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: () => number;
}

/** Handlers mostly wait for others; ten in flight keep a machine busy without drowning it. */
const slotsDefault = 10;
/** Each slot costs timers and connections; beyond this, run more processes. */
const slotsMax = 10_000;
/** Drain, abort grace and the last reports together stay below the 30 s that common supervisors allow. */
const drainMsDefault = 20_000;
const abortGraceMsDefault = 5_000;

export function runnerConfig(options: RunnerOptions): RunnerConfig {
  return {
    tasks: tasksByName(options.tasks),
    slots: checkSlots(options.slots ?? slotsDefault),
    drainMs: durationMs(options.drain ?? drainMsDefault, "drain"),
    abortGraceMs: durationMs(options.abortGrace ?? abortGraceMsDefault, "abortGrace"),
    logger: options.logger === false ? () => {} : (options.logger ?? stderrLogger),
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

function checkSlots(slots: number): number {
  if (Number.isInteger(slots) && slots >= 1 && slots <= slotsMax) return slots;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `slots is ${slots}, expected a whole number from 1 to ${slotsMax}.`, {
    detail: { field: "slots" },
  });
}
