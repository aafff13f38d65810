// A worker decides how often a loop of Conductor goes on. Each time the plan doubles, and its definition stays short. A short definition was
// compiled in one piece: with 6,000 iterations, all requests waited for 200 to 500 ms. The test counts the nodes that one turn compiles.

import { expect, it } from "vitest";
import { inTurns } from "../../src/core/slices/slice-work.ts";
import { Slices, turnRows } from "../../src/core/slices/slices.ts";
import { compileInTurns } from "../../src/engine/run/brain.ts";
import { makePlanInSlices } from "../../src/engine/run/make-plan.ts";
import { conductorDialect } from "../../src/protocols/conductor/dialect/dialect.ts";
import { snapshot } from "../../src/protocols/conductor/dialect/snapshot.ts";
import { parseWorkflowDef } from "../../src/protocols/conductor/dialect/workflow-def.ts";
import { operator } from "../support/conductor-world.ts";

const nodesEach = 4;
/** Fewer nodes than this are compiled in a turn. It is the length of a slice, and what its last task adds. */
const nodesAtOnce = 250;

it("the plan of a loop that has grown is compiled in many turns", async () => {
  const body = operator("SET_VARIABLE", "set", { inputParameters: { a: 1 } });
  const loop = operator("DO_WHILE", "loop", { loopCondition: "true", loopOver: [body] });
  const parsed = parseWorkflowDef({ name: "w", tasks: [loop] }, "w");
  if ("violations" in parsed) throw new Error(JSON.stringify(parsed.violations));
  const definition = snapshot(parsed.value, new Map());
  const source = JSON.stringify({ ...definition, grown: [{ loop: "loop", upTo: 2_000 }] });
  const slices = new Slices();
  const plan = await compileInTurns(conductorDialect(), source, slices);
  expect(plan.nodes.length).toBeGreaterThan(2_000 * nodesEach);
  expect(slices.total).toBeGreaterThan((plan.nodes.length / nodesAtOnce) * turnRows);
  const whole = new Slices();
  await inTurns(makePlanInSlices({ ...plan, output: plan.output }), whole);
  // Nodes without repeats, dependents, first parts and starters.
  expect(whole.total).toBeGreaterThan(((4 * plan.nodes.length) / nodesAtOnce) * turnRows);
});
