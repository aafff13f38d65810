// How the task of a step is placed on the board, for `graph()` and for durable functions.

import { type Backoff, stepBackoff } from "../../core/backoff.ts";
import type { LimitKey } from "../board/limits.ts";
import type { Placement } from "./plan.ts";

/** The settings of a step that its author may give. */
interface StepSettings {
  readonly labels?: readonly string[];
  readonly priority?: number;
  readonly retry?: { readonly failures: number; readonly lost?: number; readonly backoff?: Backoff };
  readonly limits?: readonly LimitKey[];
}

/** By default, a step survives two crashes of its workers. A third one is probably caused by the step itself. */
const lostDefault = 2;

export function stepPlacement(task: string, { labels, priority, retry, limits }: StepSettings): Omit<Placement, "timeouts"> {
  return {
    lanes: [{ name: task, labels: [...new Set(labels ?? [])].sort() }],
    priority: priority ?? 0,
    retry: { failures: retry?.failures ?? 0, lost: retry?.lost ?? lostDefault, backoff: retry?.backoff ?? stepBackoff },
    limits: limits ?? [],
  };
}
