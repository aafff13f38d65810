// Starts that come close together: they make one run, with the input of the last one.

import { type Duration, durationMs } from "./duration.ts";
import { LongshoreError } from "./errors.ts";
import { isObject } from "./json/json.ts";
import { isPath, pathExpected } from "./start-limit.ts";
import { waitMsMax } from "./step-bounds.ts";
import { shown } from "./text.ts";

/** How starts that come close together become one run. */
export interface Debounce {
  /** The field of the input by which starts belong together, such as `customer.id`. Default: all starts of the workflow do. */
  readonly key?: string;
  /** The run begins when no further start has come for this long. Each further start replaces its input. */
  readonly period: Duration;
  /** The run begins at the latest this long after the first start. Default: it waits for as long as starts come. */
  readonly atMost?: Duration;
}

/** As it is stored. */
export interface DebounceSource {
  readonly key?: string;
  readonly periodMs: number;
  readonly atMostMs?: number;
}

/** Checks the option `debounce` of a workflow. Throws LONGSHORE_BAD_DEFINITION, which names the field. */
export function debounceOf(given: unknown, workflow: string): DebounceSource {
  if (!isObject(given)) throw bad(workflow, "debounce", given, 'an object such as { key: "customer.id", period: "30s" }');
  const { key, period, atMost, ...others } = given;
  const [other] = Object.keys(others);
  if (other !== undefined) throw bad(workflow, `debounce.${other}`, others[other], "one of the fields key, period, atMost");
  if (key !== undefined && !isPath(key)) throw bad(workflow, "debounce.key", key, pathExpected);
  const periodMs = timeOf(period, workflow, "debounce.period");
  if (atMost === undefined) return { ...(key !== undefined && { key }), periodMs };
  const atMostMs = timeOf(atMost, workflow, "debounce.atMost");
  if (atMostMs < periodMs) throw bad(workflow, "debounce.atMost", atMost, "a duration that is not shorter than debounce.period");
  return { ...(key !== undefined && { key }), periodMs, atMostMs };
}

function timeOf(given: unknown, workflow: string, field: string): number {
  const expected = 'a duration from 1 ms to 366 days, such as "30s"';
  try {
    const ms = durationMs(given as Duration, field);
    if (ms >= 1 && ms <= waitMsMax) return ms;
  } catch {
    // The error below names the workflow, too.
  }
  throw bad(workflow, field, given, expected);
}

function bad(workflow: string, field: string, given: unknown, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", `${field} of workflow ${workflow} is ${shown(given)}, expected ${expected}.`, {
    detail: { field, expected },
  });
}
