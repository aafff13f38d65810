// A child run that is cancelled alone: its parent continues, and can undo its earlier steps.

import { expect, it } from "vitest";
import { StepError, task, work, workflow } from "../../index.ts";
import { serve } from "../../server/index.ts";

it("throws a StepError in its parent, whose undoing steps run", async () => {
  await using server = await serve({ ephemeral: true, port: null });
  const undo = task("undo", async (what: string) => `undone ${what}`);
  const packing = workflow("packing", async (w) => w.signal("packed"));
  const order = workflow("order", async (w) => {
    try {
      return await w.run(packing, null);
    } catch (error) {
      if (!(error instanceof StepError)) throw error;
      return [error.state, error.code, await w.step(undo, "the reservation")];
    }
  });
  await using _worker = await work({ tasks: [undo], workflows: [order, packing], on: server, logger: false, signals: false });
  const run = await server.start(order, null);
  const child = async () => {
    for await (const one of server.runs({ workflow: "packing" })) return one.id;
    return undefined;
  };
  let id: string | undefined;
  while (id === undefined) id = await child();
  expect(await server.run(id).cancel("not today")).toBe(true);
  expect(await run.result()).toEqual(["cancelled", "LONGSHORE_CANCELLED", "undone the reservation"]);
});
