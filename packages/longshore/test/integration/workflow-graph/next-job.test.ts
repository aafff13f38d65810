// The next job in the response to a report, between our worker and our server.

import { expect, it } from "vitest";
import { graph, task, work } from "../../../src/index.ts";
import { workflowGraph } from "../../../src/protocols/workflow-graph/worker/index.ts";
import { serve } from "../../../src/server/index.ts";

const steps = 20;

it("a worker claims once for a chain of steps, because the response to each report has the next step", async () => {
  await using server = await serve({ ephemeral: true, port: 0 });
  const link = task("link", async (at: number) => at + 1);
  const chain = graph<number, unknown>("chain", (g, input) => {
    let last = g.step(link, input);
    for (let at = 1; at < steps; at++) last = g.step(link, last);
    return last;
  });
  await server.define(chain);
  const polls: unknown[] = [];
  const listeners = [{ pollStarted: (poll: unknown) => void polls.push(poll) }];
  await using _worker = await work({ tasks: [link], on: workflowGraph(server.url as string), signals: false, listeners, slots: 2 });
  expect(await (await server.start(chain, 0)).result()).toBe(steps);
  // The waiting claim that gets the first step, the one that replaces it, and the claim of a helper.
  expect(polls.length).toBeLessThanOrEqual(4);
});
