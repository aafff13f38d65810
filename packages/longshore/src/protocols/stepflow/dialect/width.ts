// An upper bound for the number of steps of a flow in flight at once. Steps of one chain never run at once, so the number of chains that
// cover all steps is a bound. One pass computes the bound. It may be too large, but never too small. For a sequence it is 1, so a sequence
// needs no limit.

import type { PlanNode } from "../../../engine/run/plan.ts";

/** `steps` is the number of steps, which are the first nodes. */
export function widthOf(nodes: readonly PlanNode[], steps: number): number {
  const followed = new Set<number>();
  let chains = 0;
  for (let at = 0; at < steps; at++) {
    // A step continues the chain of a step that it always waits for, if no other step already continues it.
    const before = nodes[at]?.after.find((step) => step < steps && !followed.has(step));
    if (before === undefined) chains++;
    else followed.add(before);
  }
  return chains;
}
