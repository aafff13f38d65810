// How the task of a step is placed on the board.

import type { Placement } from "../../../engine/run/plan.ts";
import type { StepSource } from "./source.ts";

/** The crash of one worker is tolerated by default; a task that crashes several workers is not. */
const lostDefault = 2;

export function placementOf(
  { labels, priority, retry, limits }: Omit<StepSource, "input">,
  task: string,
): Pick<Placement, "lanes" | "priority" | "retry" | "limits"> {
  return {
    lanes: [{ name: task, labels: [...new Set(labels ?? [])].sort() }],
    priority: priority ?? 0,
    retry: {
      failures: retry?.failures ?? 0,
      lost: retry?.lost ?? lostDefault,
      backoff: retry?.backoff ?? { kind: "exponential", delayMs: 1_000, maxMs: 60_000, jitter: 0.2 },
    },
    limits: limits ?? [],
  };
}
