// How the task of a step is placed on the board, for `graph()` and for durable functions.

import { stepBackoff } from "../../core/backoff.ts";
import type { TaskStepSettings } from "../../core/task-step.ts";
import type { Placement } from "./plan.ts";

/** By default, a step survives two crashes of its workers. A third one is probably caused by the step itself. */
const lostDefault = 2;

export function stepPlacement(task: string, { labels, priority, retry, limits }: TaskStepSettings): Omit<Placement, "timeouts"> {
  return {
    lanes: [{ name: task, labels: [...new Set(labels ?? [])].sort() }],
    priority: priority ?? 0,
    retry: { failures: retry?.failures ?? 0, lost: retry?.lost ?? lostDefault, backoff: retry?.backoff ?? stepBackoff },
    limits: limits ?? [],
  };
}
