// A run with several items, or none. It has one task, which starts a run for each item and waits until they end. The items are in the run's
// input and are not repeated in the task.

import type { Json, JsonObject } from "../../../core/json/json.ts";
import { isObject } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import type { Dialect } from "../../../engine/run/dialect.ts";
import { makePlan } from "../../../engine/run/make-plan.ts";
import type { TaskNode } from "../../../engine/run/plan.ts";
import { flowResultIn } from "./result.ts";
import { type ComponentTask, retriesUnlimited } from "./router.ts";
import { rerunFields } from "./settings.ts";

const itemsDialectName = "stepflow-items";
/** The lane of the task. No route leads to it. */
export const itemsLane = "stepflow-items";
/** One definition for all such runs: their differences are in the settings of the run. */
export const itemsDefinition = { id: itemsDialectName, name: `.${itemsDialectName}`, dialect: itemsDialectName, source: "{}" } as const;

/** How the items of a run ended: the output of the run, also when some items have failed. */
export interface ItemCounts {
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
}

export const itemsDialect: Dialect = {
  name: itemsDialectName,
  compile: () => makePlan({ dialect: itemsDialectName, nodes: [node], output: "counts", judgedByOutput: true, outputAlways: true }),
  resolve(_plan, template, scope) {
    if (template !== "counts") return { value: given as unknown as Json };
    const output = scope.output(0);
    if (output === undefined) return { needs: [0] };
    const result = flowResultIn(writeExact(output));
    // A failed run keeps the counts as its output.
    return result?.outcome === "failed" ? { failed: result.error.message, output: result.error.data ?? null } : { value: output };
  },
  rerunFields,
  outputFailed: (_plan, reason) => reason,
};

const given: ComponentTask = { component: "/items", input: null };

const node: TaskNode = {
  kind: "task",
  id: "items",
  input: "given",
  after: [],
  waitsFor: "done",
  timeouts: {},
  lanes: [{ name: itemsLane, labels: [] }],
  priority: 0,
  retry: { failures: 0, lost: retriesUnlimited, backoff: { kind: "fixed", delayMs: 1_000 } },
  limits: [],
};

/** Null while the counts are not known, or when the run was ended before its items. */
export function countsIn(output: Json): ItemCounts | null {
  if (!isObject(output)) return null;
  const { completed, failed, cancelled } = output as JsonObject;
  return typeof completed === "number" && typeof failed === "number" && typeof cancelled === "number"
    ? { completed, failed, cancelled }
    : null;
}
