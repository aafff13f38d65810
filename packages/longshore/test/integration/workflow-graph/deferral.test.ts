// A deferral between our worker and our server: the task waits on the server and uses no slot.

import { expect, it } from "vitest";
import { task, work } from "../../../src/index.ts";
import { workflowGraph } from "../../../src/protocols/workflow-graph/worker/index.ts";
import { serve } from "../../../src/server/index.ts";

const other = task("other", async () => "done meanwhile");

it("a deferred task uses no slot, and its worker runs others", async () => {
  await using server = await serve({ ephemeral: true, port: 0 });
  const waits = task("waits", async (_: null, ctx) => ctx.defer("1h"));
  await using worker = await work({ tasks: [waits, other], on: workflowGraph(server.url as string), signals: false, slots: 1 });
  const deferred = new Promise<void>((resolve) => worker.on("executionCompleted", ({ kind }) => kind === "deferred" && resolve()));
  const called = server.call(waits, null);
  called.catch(() => {});
  await deferred;
  expect(await server.call(other, null)).toBe("done meanwhile");
});

it("the next call gets the deferral's state, in the same attempt", async () => {
  await using server = await serve({ ephemeral: true, port: 0 });
  const asks = task("asks", async (_: null, ctx) =>
    ctx.deferrals < 2
      ? ctx.defer("1ms", { asked: ctx.deferrals })
      : { attempt: ctx.attempt, deferrals: ctx.deferrals, deferred: ctx.deferred },
  );
  await using _worker = await work({ tasks: [asks], on: workflowGraph(server.url as string), signals: false });
  expect(await server.call(asks, null)).toEqual({ attempt: 1, deferrals: 2, deferred: { asked: 1 } });
});
