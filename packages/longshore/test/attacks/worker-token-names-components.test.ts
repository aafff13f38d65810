// The attacker holds a worker token and claims tasks of very many names. Stepflow's list of components, which contains these names, had no limit
// and was sorted and written in one piece: 40,000 names took 150 ms of CPU in one turn of the event loop.

import { expect, it } from "vitest";
import type { ReservedLanes } from "../../src/engine/board/reserved-lanes.ts";
import type { Workers } from "../../src/engine/board/workers.ts";
import type { DocumentStore } from "../../src/engine/run/documents.ts";
import { listComponents } from "../../src/protocols/stepflow/server/api/components.ts";
import { componentSource } from "../../src/protocols/stepflow/server/component-source.ts";
import type { StepflowConfig } from "../../src/protocols/stepflow/server/config/config.ts";
import { componentsMax } from "../../src/protocols/stepflow/server/config/registered-components.ts";
import { TestClock } from "../../src/testing/clock.ts";

it("a list of components has a limited number of names of workers, and is sorted in several turns", async () => {
  let workersRead = 0;
  const workers = {
    async *inOrder() {
      for (let at = 0; at < 40; at++) {
        workersRead++;
        yield { reach: { names: Array.from({ length: 1_000 }, (_, each) => `task-${each}-${at}`) } };
      }
    },
  };
  const source = componentSource({
    config: { plugins: new Map([["own", { type: "longshore", name: "own" }]]) } as unknown as StepflowConfig,
    clock: new TestClock(),
    documents: {} as DocumentStore,
    workers: workers as unknown as Workers,
    reserved: { has: () => false } as unknown as ReservedLanes,
    builtins: [],
    discover: async () => [],
  });
  const turns: number[] = [];
  const { components } = await listComponents(source, true, { turn: async (rows) => void turns.push(rows) });
  expect([components.length, workersRead]).toEqual([componentsMax, componentsMax / 1_000]);
  const paths = components.map(({ path }) => path);
  expect(paths).toEqual([...paths].sort());
  expect(turns.length).toBeGreaterThanOrEqual(componentsMax / 1_000);
});
