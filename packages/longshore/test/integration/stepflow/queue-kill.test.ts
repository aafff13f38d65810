// The server's process is killed while flows run, and started again on the same data.

import { join } from "node:path";
import { expect, it } from "vitest";
import { ExecutionStatus } from "../../../src/protocols/stepflow/wire/messages.ts";
import { OrchestratorService } from "../../../src/protocols/stepflow/wire/services.ts";
import { temporaryFolder } from "../../support/cli.ts";
import { channelTo } from "../../support/grpc.ts";
import { step } from "../../support/stepflow-flows.ts";
import { startStepflow } from "../../support/stepflow-process.ts";
import { PullingWorker } from "../../support/stepflow-queue.ts";

async function start(data: string, port = 0) {
  const server = await startStepflow(["--data", data, "--port", String(port)]);
  const { channel } = server;
  return {
    ...server,
    pull: (workerId: string) => new PullingWorker(channelTo(server.address), "python", workerId),
    heartbeat: (taskId: string, workerId: string) => channel.unary(OrchestratorService.TaskHeartbeat, { taskId, workerId }),
    complete: (taskId: string, output: string) => channel.unary(OrchestratorService.CompleteTask, { taskId, response: { output } }),
  };
}

it("[S9-25, S9-26] continues sequential and parallel steps, and executes no ended step again", async () => {
  const data = join(temporaryFolder(), "data");
  let server = await start(data);
  const executed: string[] = [];
  const ann = server.pull("ann");
  await ann.register({ componentId: "echo" });
  const take = async (worker: PullingWorker) => {
    const { taskId, execute } = await worker.next();
    await server.heartbeat(taskId, worker.workerId);
    executed.push(`${execute.observability?.stepId} ${execute.attempt}`);
    return taskId;
  };
  const steps = [
    step("first", "/python/echo"),
    ...["left", "middle", "right"].map((id) => step(id, "/python/echo", "first")),
    { id: "last", component: "/python/echo", input: [{ $step: "left" }, { $step: "middle" }, { $step: "right" }] },
  ];
  const runId = await server.run({ name: "diamond", steps, output: { $step: "last" } }, "x");
  await server.complete(await take(ann), "first");
  // When the process is killed, one of the three has ended, and the others are held.
  await server.complete(await take(ann), "one");
  const held = [await take(ann), await take(ann)];
  await server.kill();
  await expect(server.complete(held[0] as string, "other")).rejects.toMatchObject({ code: 14 });

  server = await start(data, server.port);
  const bob = server.pull("bob");
  for (const taskId of held) await server.complete(taskId, "other");
  await server.complete(await take(bob), "last");
  expect(await server.result(runId)).toMatchObject({ status: ExecutionStatus.COMPLETED, output: "last" });
  expect(executed.sort()).toEqual(["first 1", "last 1", "left 1", "middle 1", "right 1"]);
});
