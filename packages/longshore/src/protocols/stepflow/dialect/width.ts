// How many steps of a flow can be in flight at once, at most. Steps of one chain never are, so as many chains as cover all steps are a
// bound: found in one pass, enough to see that a sequence needs no limit, and never too small.

import type { PlanNode } from "../../../engine/run/plan.ts";

/** `steps` is how many of the nodes, the first ones, are steps. */
export function widthOf(nodes: readonly PlanNode[], steps: number): number {
  const followed = new Set<number>();
  let chains = 0;
  for (let at = 0; at < steps; at++) {
    // It follows one of the steps that it always waits for, unless another does already.
    const before = nodes[at]?.after.find((step) => step < steps && !followed.has(step));
    if (before === undefined) chains++;
    else followed.add(before);
  }
  return chains;
}
