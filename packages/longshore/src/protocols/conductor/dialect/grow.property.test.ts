// What has grown never moves what was there: every node of a plan has the same place and id in each longer one.

import fc from "fast-check";
import { expect, it } from "vitest";
import { atOnce } from "../../../core/slices/slice-work.ts";
import { compileInSlices } from "./compile.ts";
import type { GrownDef, Growth } from "./loops.ts";
import { parseWorkflowDef } from "./workflow-def.ts";

const simple = (ref: string) => ({ name: "work", taskReferenceName: ref });
const forkOf = (ref: string) => [
  { name: ref, taskReferenceName: ref, type: "FORK_JOIN_DYNAMIC", inputParameters: { forkTaskInputs: [] } },
  { name: `${ref}_join`, taskReferenceName: `${ref}_join`, type: "JOIN" },
];

function definitionOf(loops: number, withItems: boolean): GrownDef {
  const loop = (at: number) => ({
    ...{ name: `loop${at}`, taskReferenceName: `loop${at}`, type: "DO_WHILE" },
    ...(withItems ? { items: "${workflow.input.items}" } : { loopCondition: "true" }),
    loopOver: [
      {
        name: "sw",
        taskReferenceName: `sw${at}`,
        type: "SWITCH",
        evaluatorType: "value-param",
        expression: "x",
        decisionCases: { a: [simple(`in${at}`)] },
      },
      ...forkOf(`fork${at}`),
      simple(`last${at}`),
    ],
  });
  const tasks = [...forkOf("fork"), ...Array.from({ length: loops }, (_, at) => loop(at)), simple("after")];
  const parsed = parseWorkflowDef({ name: "w", tasks }, "w");
  if ("violations" in parsed) throw new Error(JSON.stringify(parsed.violations));
  return parsed.value;
}

const growth = (loops: number): fc.Arbitrary<Growth> =>
  fc.oneof(
    fc.record({ loop: fc.nat(loops - 1).map((at) => `loop${at}`), upTo: fc.integer({ min: 1, max: 9 }) }),
    fc.record({
      fork: fc.oneof(
        fc.constant("fork"),
        fc.tuple(fc.nat(loops - 1), fc.integer({ min: 1, max: 3 })).map(([at, n]) => `fork${at}__${n}`),
      ),
      tasks: fc.constant([]),
      joinOn: fc.constant([]),
    }),
  );

it("keeps the places and ids of all nodes in a longer definition", () => {
  const cases = fc
    .integer({ min: 1, max: 3 })
    .chain((loops) => fc.tuple(fc.constant(loops), fc.boolean(), fc.array(growth(loops), { maxLength: 6 })));
  fc.assert(
    fc.property(cases, ([loops, withItems, grown]) => {
      const definition = definitionOf(loops, withItems);
      let before: readonly string[] = [];
      for (let count = 0; count <= grown.length; count++) {
        const plan = atOnce(compileInSlices({ ...definition, grown: grown.slice(0, count) }));
        const ids = plan.nodes.map(({ id }) => id);
        expect(ids.slice(0, before.length)).toEqual(before);
        expect(new Set(ids).size).toBe(ids.length);
        before = ids;
      }
    }),
    { numRuns: 60 },
  );
});

it("leads from the last iteration of a loop to nothing but its end, until it has grown", () => {
  const definition = definitionOf(1, false);
  const [short, long] = [undefined, [{ loop: "loop0", upTo: 5 }]].map((grown) => atOnce(compileInSlices({ ...definition, grown })));
  const turn = (plan: typeof short, iteration: number) => plan?.nodes[plan.index.get(`turn loop0__${iteration}`) ?? -1];
  expect(turn(short, 2)).toHaveProperty("grows");
  expect(turn(long, 2)).not.toHaveProperty("grows");
  expect(turn(long, 5)).toHaveProperty("grows");
  expect(turn(short, 3)).toBeUndefined();
});
