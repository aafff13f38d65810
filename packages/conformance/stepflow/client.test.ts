// The SDK's own client, unchanged: it receives the same from our server as from the real orchestrator.
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { openStage, type Stage } from "../src/stage.ts";
import { pythonWithSdk } from "./fetch.ts";
import { operatorOf } from "./operator.ts";
import { startOrchestrator } from "./orchestrator.ts";
import { QUEUE, startStepflowServer } from "./our-server.ts";
import { pythonGrpcWorker } from "./workers.ts";

const program = fileURLToPath(new URL("./programs/client.py", import.meta.url));

async function asClientSees(stage: Stage, { url, address }: { url: string; address: string }): Promise<Record<string, unknown>> {
  pythonGrpcWorker(stage, "0.13", address);
  await operatorOf(url, "0.13").knows("echo");
  const child = stage.start(pythonWithSdk("0.13"), [program, address], { name: "StepflowClient" });
  const [line] = await child.printed(/^\{.*\}$/m);
  return JSON.parse(line) as Record<string, unknown>;
}

it("StepflowClient sees on our server what it sees on the real orchestrator", async (context) => {
  const stage = openStage(context);
  const real = await asClientSees(stage, await startOrchestrator(stage, "0.13"));
  const ours = await asClientSees(stage, await startStepflowServer(stage, QUEUE));
  // The real orchestrator gives two events of one run the same number. Our ids need not be UUIDs, because another protocol may have chosen
  // the id of a run.
  expect(ours).toEqual({ ...real, "events rise": true, "bad run": "NOT_FOUND" });
});
