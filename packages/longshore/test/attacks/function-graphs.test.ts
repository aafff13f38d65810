// The attacker holds a worker token and has a turn of a durable function. A command names the number of the newest result that the function
// had received. With a number above all results, the graph of the run was never ready, and the server sent no more responses. A graph of
// 20,000 commands, which a read token may request, blocked the event loop for 80 to 95 ms.

import { expect, it } from "vitest";
import { atOnce } from "../../src/core/slices/slice-work.ts";
import { functionGraph } from "../../src/engine/run/function-graph.ts";
import type { Plan } from "../../src/engine/run/plan.ts";
import type { RecordTimes } from "../../src/engine/run/record-times.ts";
import { startFunctions } from "../support/function-world.ts";

it("a command that names results that do not exist does not delay the graph", async () => {
  const { api, begin, add } = await startFunctions();
  const { id, lease } = await begin();
  const command = { kind: "local", name: "s", after: 0 };
  const commands = [
    { ...command, node: 1 },
    { ...command, node: 2, after: 1 },
    { ...command, node: 3, after: Number.MAX_SAFE_INTEGER },
  ];
  expect(await add(lease, { commands })).toBe(200);
  const graph = (await (await api("GET", `/runs/${id}/graph`)).json()) as { nodes: number[]; edges: [number, number][] };
  expect(graph.nodes).toEqual([0, 1, 2, 3]);
  expect(graph.edges).toEqual(
    expect.arrayContaining([
      [0, 1],
      [1, 2],
      [2, 3],
    ]),
  );
});

it("a graph of thousands of commands is built in slices", () => {
  const driver = { id: "r.0", node: 0, step: "f", state: "held", lane: null, command: null, ordinal: 0 } as unknown as RecordTimes;
  const records = Array.from({ length: 5_000 }, (_, at): RecordTimes => {
    const node = at + 1;
    return { ...driver, id: `r.${node}`, node, step: "s", state: "done", command: `${at} local s`, ordinal: node };
  });
  const plan = { nodes: [{ id: "f", kind: "task", lanes: [] }], driven: true } as unknown as Plan;
  let slices = 0;
  for (const work = functionGraph(plan, [driver, ...records]); !work.next().done; ) slices++;
  expect(slices).toBeGreaterThan(60);
  const { nodes, edges } = atOnce(functionGraph(plan, [driver, ...records]));
  expect([nodes.length, edges.length]).toEqual([5_001, 5_000]);
});
