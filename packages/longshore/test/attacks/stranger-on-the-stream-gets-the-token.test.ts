// The attacker has no token, but may publish to the NATS stream from which a worker takes its tasks. Each task names the orchestrator to
// which the worker reports. So the worker once sent its token to the attacker's address. A task with the id of another orchestrator's task
// also hid that task, because the worker treated both as the same.

import { expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { task } from "../../src/core/task.ts";
import { TaskAssignment } from "../../src/protocols/stepflow/wire/messages.ts";
import { OrchestratorService } from "../../src/protocols/stepflow/wire/services.ts";
import { natsSettings } from "../../src/protocols/stepflow/worker/nats/options.ts";
import { stepflowNats } from "../../src/protocols/stepflow/worker/nats/worker.ts";
import { channelOpener } from "../../src/protocols/stepflow/worker/queue-transport.ts";
import { natsMissing, TestNats } from "../support/nats.ts";
import { StepflowOrchestrator } from "../support/stepflow-orchestrator.ts";
import { startWorker } from "../support/stepflow-worker.ts";

const token = "worker-secret-0123456789";

it("a task that names a foreign orchestrator does not send it the worker's token", async (context) => {
  if (natsMissing) context.skip(`needs ${natsMissing}`);
  const [nats, own, foreign] = await Promise.all([TestNats.start(), StepflowOrchestrator.start(), StepflowOrchestrator.start()]);
  await nats.addStream("STEPFLOW_TASKS");
  const echo = task("echo", (input: unknown) => input);
  for (const orchestrator of [foreign, own]) {
    const assignment = orchestrator.task("t1", { componentId: "echo", input: 1 });
    await nats.publish("STEPFLOW_TASKS", TaskAssignment.encode(assignment));
  }
  await startWorker([echo], stepflowNats(nats.url, { env: {}, token, orchestratorUrl: own.url }));
  await Promise.all([foreign.result("t1"), own.result("t1")]);
  expect(own.calls.map(({ metadata }) => metadata.authorization)).toContain(`Bearer ${token}`);
  expect(foreign.calls.length).toBeGreaterThan(0);
  for (const { metadata } of foreign.calls) expect(metadata).not.toHaveProperty("authorization");
});

it("a channel sends the token only to trusted addresses", async () => {
  const [own, foreign] = await Promise.all([StepflowOrchestrator.start(), StepflowOrchestrator.start()]);
  const settings = natsSettings(undefined, { env: {}, token, orchestratorUrl: own.url });
  const open = channelOpener(settings, systemClock, (address) => address === own.url);
  for (const { url } of [own, foreign]) {
    const channel = open(url);
    onTestFinished(() => channel.close());
    await channel.unary(OrchestratorService.TaskHeartbeat, { taskId: "t", workerId: "w" });
  }
  expect(own.calls[0]?.metadata).toMatchObject({ authorization: `Bearer ${token}` });
  expect(foreign.calls[0]?.metadata).not.toHaveProperty("authorization");
});

it("a worker with a token but without a trusted orchestrator does not start", () => {
  expect(() => stepflowNats("nats://localhost:4222", { env: {}, token })).toThrow("STEPFLOW_TASKS_URL");
});
