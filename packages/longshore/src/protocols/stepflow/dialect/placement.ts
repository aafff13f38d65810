// The lane of a step's task, its retries, and the limit of steps in flight per run.

import type { Json } from "../../../core/json/json.ts";
import type { LimitKey } from "../../../engine/board/limits.ts";
import type { Dialect } from "../../../engine/run/dialect.ts";
import type { Plan, RetryPolicy } from "../../../engine/run/plan.ts";
import type { Run } from "../../../engine/run/run.ts";
import { flowPlanOf } from "./compile.ts";
import type { Step } from "./flow.ts";
import { failed, orchestratorError } from "./result.ts";
import type { Routed, Router } from "./router.ts";
import { settingsOf } from "./settings.ts";

export function placeBy(router: Router): NonNullable<Dialect["place"]> {
  return (plan, node, input, scope) => {
    const step = node.origin as Step;
    const routed = router.route(step.component, input, (kind, name) => scope.document(kind, name));
    if ("documents" in routed) return { needs: [], documents: routed.documents };
    if ("failed" in routed) {
      const error = orchestratorError(routed.failed, routed.message);
      return { failed: error.message, output: failed(error) as unknown as Json };
    }
    const { lanes, given, timeouts = {}, holdMs } = routed;
    const placed = { lanes, priority: 0, retry: retryOf(step, routed), limits: limitsOf(plan, scope.run), timeouts };
    return { placement: holdMs === undefined ? placed : { ...placed, holdMs }, given };
  };
}

/**
 * Transport errors, lost workers and timeouts have a separate budget. Failures of the component are retried only when the step requests it.
 */
function retryOf({ onError }: Step, { transport }: Routed): RetryPolicy {
  return {
    failures: onError.action === "retry" ? onError.retries : 0,
    lost: transport.retries,
    backoff: transport.backoff,
    lostBackoff: transport.backoff,
    timeoutSpends: "lost",
    retryUnclaimed: true,
  };
}

/** Sets a limit key only when the run could exceed the limit. Most runs have fewer steps at once. */
function limitsOf(plan: Plan, run: Run): LimitKey[] {
  const { maxConcurrency, limitKey } = settingsOf(run);
  if (limitKey === undefined && flowPlanOf(plan).width <= maxConcurrency) return [];
  // A step that the limit holds back is not in its queue yet, so its queue timeout does not run.
  return [{ key: limitKey ?? limitKeyOf(run.id), held: maxConcurrency, pausesClaim: true }];
}

/** The key under which the steps in flight are counted: those of a run and of the runs of its items. */
export function limitKeyOf(runId: string): string {
  return `stepflow:${runId}`;
}
