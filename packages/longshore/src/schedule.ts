// Schedules written in code: `schedule(name, { cron, workflow, ... })` is a plain value. A server stores it with `server.define()`.

import type { Duration } from "./core/duration.ts";
import { LongshoreError } from "./core/errors.ts";
import type { Workflow } from "./workflow-value.ts";

/** The times of a schedule: a cron expression in a time zone (default: UTC), an interval counted from an anchor (default: 1970), or one time. */
export type ScheduleTimes =
  | { cron: string; timezone?: string; every?: undefined; anchor?: undefined; at?: undefined }
  | { every: Duration; anchor?: Date | string | number; cron?: undefined; timezone?: undefined; at?: undefined }
  | { at: Date | string | number; cron?: undefined; timezone?: undefined; every?: undefined; anchor?: undefined };

/** The options of `schedule()` besides its times. */
export interface ScheduleOptions<Input = unknown> {
  /** What to start: a workflow value, which is defined with the schedule, or the name of a defined one. */
  workflow: string | Workflow<Input>;
  /** The input of each run. Default: null, or an empty object with `tickField`. */
  input?: NoInfer<Input> | Partial<NoInfer<Input>>;
  /** The field of the input that gets the time of the tick, such as `2026-03-29T01:00:00.000Z`. */
  tickField?: string;
  /** What happens to a tick while a run of an earlier one is open. Default: `skip`. */
  overlap?: "skip" | "queue" | "cancel-previous" | "allow";
  /** With `queue`, how many ticks wait at most. Default: 10. */
  queueMax?: number;
  /** Which missed ticks start after a downtime: only the last one, or all. Default: `last`. */
  catchUp?: "last" | "all";
  /** How late a tick may start. Default: one day. */
  catchUpWindow?: Duration;
  /** Each tick is delayed by a time below this. The delay of a tick is always the same. Default: 0. */
  jitter?: Duration;
}

/** A schedule as a value: store it with `server.define()`. */
export interface Schedule<Input = unknown> {
  readonly name: string;
  readonly workflow: string | Workflow<Input>;
  /** Its rules in the form in which a server takes them. */
  readonly rules: { readonly [field: string]: unknown; readonly workflow: string };
  readonly input: unknown;
}

/**
 * Makes a schedule. The server checks its times when it is defined, and starts one run for each of them. Throws LONGSHORE_BAD_DEFINITION when it
 * has no name, or not exactly one of `cron`, `every` and `at`.
 */
export function schedule<Input>(name: string, options: ScheduleTimes & ScheduleOptions<Input>): Schedule<Input> {
  const { workflow, input, anchor, at, ...rest } = options;
  const kinds = (["cron", "every", "at"] as const).filter((kind) => options[kind] !== undefined);
  if (name === "" || kinds.length !== 1) {
    const found = kinds.length === 0 ? "none of cron, every and at" : kinds.join(" and ");
    const what = name === "" ? "A schedule has no name" : `Schedule ${name} has ${found}`;
    throw new LongshoreError("LONGSHORE_BAD_DEFINITION", `${what}, expected a name and one of cron, every and at.`, {
      detail: { field: name === "" ? "name" : (kinds[1] ?? "cron"), expected: "one of cron, every and at" },
    });
  }
  const rules = {
    ...rest,
    workflow: typeof workflow === "string" ? workflow : workflow.name,
    ...(anchor === undefined ? {} : { anchor: timeOf(anchor) }),
    ...(at === undefined ? {} : { at: timeOf(at) }),
  };
  return Object.freeze({ name, workflow, rules, input: input ?? (rest.tickField === undefined ? null : {}) });
}

function timeOf(time: Date | string | number): string | number {
  return time instanceof Date ? time.getTime() : time;
}
