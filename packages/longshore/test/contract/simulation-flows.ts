// Flows for simulations: lazy plans, with choices between steps and their own limit.

import type { Json, JsonObject } from "../../src/core/json/json.ts";
import { laneOf } from "../../src/engine/board/lanes.ts";
import type { Dialect } from "../../src/engine/run/dialect.ts";
import { stepflowDialect } from "../../src/protocols/stepflow/dialect/dialect.ts";
import type { Routed } from "../../src/protocols/stepflow/dialect/router.ts";
import type { Random } from "../faults/random.ts";

/** A component has the name of its tasks' lane. */
export const flowDialect: Dialect = stepflowDialect({
  route: (component, input): Routed => ({
    plugin: "simulated",
    remainder: component,
    params: {},
    lanes: [laneOf(component.slice(1))],
    given: input,
    transport: { retries: 2, backoff: { kind: "fixed", delayMs: 50 } },
    timeouts: component === "/b" ? { endMs: 1_500, claimMs: 3_000 } : {},
  }),
});

export function makeFlow(random: Random, lanes: readonly string[]): JsonObject {
  const count = random.between(2, 7);
  const steps = Array.from({ length: count }, (_, at): JsonObject => {
    const onError = random.pick<JsonObject>([
      { action: "fail" },
      { action: "fail" },
      { action: "useDefault" },
      { action: "retry", maxRetries: 1 },
    ]) as JsonObject;
    return {
      id: `s${at}`,
      component: `/${random.pick(lanes)}`,
      input: makeValue(random, at, 2),
      onError,
      mustExecute: random.chance(0.15),
    };
  });
  return { name: "flow", steps, output: makeValue(random, count, 3) };
}

/** A value over the first `steps` steps. */
function makeValue(random: Random, steps: number, depth: number): Json {
  const drawn = random.next();
  const inner = () => makeValue(random, steps, depth - 1);
  if (depth === 0 || drawn < 0.4)
    return steps === 0 || random.chance(0.1) ? { $input: "go" } : { $step: `s${random.between(0, steps - 1)}` };
  if (drawn < 0.65) return [inner(), inner()];
  if (drawn < 0.8) return { $coalesce: [random.chance(0.5) ? null : inner(), inner(), inner()] };
  // biome-ignore lint/suspicious/noThenProperty: it is the language's own word, and a flow is never awaited
  return { $if: random.chance(0.5) ? { $input: "go" } : inner(), then: inner(), else: inner() };
}
