// A run and its child run from the command line: each shows the id of the other.

import { expect, it, onTestFinished } from "vitest";
import { serve } from "../../src/server/index.ts";
import { work } from "../../src/work.ts";
import { workflow } from "../../src/workflow.ts";
import { longshore } from "../support/cli.ts";

it("longshore runs RUN shows the id of the child run below its step, and in the child the id of its parent", async () => {
  const server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const billing = workflow("billing", async (_w, total: number) => `R-${total}`);
  const order = workflow("order", async (w, total: number) => w.run(billing, total), { uses: [billing] });
  const worker = await work({ workflows: [order, billing], on: server, logger: false, signals: false });
  onTestFinished(() => worker.stop());
  const { id } = await server.start(order, 40);
  await server.result(id);
  const run = async (...args: string[]) => (await longshore(args, { env: { LONGSHORE_URL: server.url as string } })).stdout;
  const { items } = JSON.parse(await run("runs", "--workflow", "billing", "--json"));
  const child: string = items[0].id;
  const parent = await run("runs", id);
  expect(parent).toMatch(new RegExp(`\n✓ billing .*\n {4}run ${child}\n {4}→ "R-40"\n`));
  expect(parent).not.toContain("parent");
  expect(await run("runs", child)).toMatch(new RegExp(`^billing .*${child}\nparent  ${id}\ninput   40\n`));
  expect(JSON.parse(await run("runs", id, "--json")).steps).toMatchObject([{ id: "order" }, { id: "billing", childRunId: child }]);
});
