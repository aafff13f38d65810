// The attacker may publish to the NATS stream from which workers take tasks, or an orchestrator is permanently lost. A task that names an
// unreachable orchestrator was once delivered again every five seconds without an end, and used a slot each time.

import { connect } from "@nats-io/transport-node";
import { expect, it, onTestFinished, vi } from "vitest";
import { task } from "../../src/core/task.ts";
import { TaskAssignment } from "../../src/protocols/stepflow/wire/messages.ts";
import { loadNats } from "../../src/protocols/stepflow/wire/nats/client.ts";
import { ensureConsumer } from "../../src/protocols/stepflow/wire/nats/consumer.ts";
import { deliveriesMax } from "../../src/protocols/stepflow/worker/nats/redelivery.ts";
import { stepflowNats } from "../../src/protocols/stepflow/worker/nats/worker.ts";
import { work } from "../../src/work.ts";
import { natsMissing, TestNats } from "../support/nats.ts";
import { StepflowOrchestrator } from "../support/stepflow-orchestrator.ts";

const stream = "STEPFLOW_TASKS";
const consumer = "workers";

it("a task whose orchestrator cannot be reached is given up with a report after enough deliveries", async (context) => {
  if (natsMissing) context.skip(`needs ${natsMissing}`);
  const nats = await TestNats.start();
  const orchestrator = await StepflowOrchestrator.start();
  await nats.addStream(stream);
  const told = orchestrator.task("t1", { componentId: "echo", input: 1 });
  const lost = { ...told, context: { ...told.context, orchestratorServiceUrl: "http://:no-address:" } };
  await nats.publish(stream, TaskAssignment.encode(lost as TaskAssignment));
  await deliverAll(nats, deliveriesMax - 1);

  const reports: string[] = [];
  const echo = task("echo", (input: unknown) => input);
  const worker = await work({
    tasks: [echo],
    on: stepflowNats(nats.url, { env: {}, stream, consumer }),
    signals: false,
    logger: ({ level, message }) => void reports.push(`${level} ${message}`),
  });
  onTestFinished(() => worker.stop({ force: true }));
  await vi.waitFor(() => expect(reports.join("\n")).toMatch(/error .*task t1 .* given up after 20 deliveries: .*:no-address:/), {
    timeout: 20_000,
  });
  await vi.waitFor(async () => expect(await nats.counts(stream, consumer)).toEqual({ held: 0, waiting: 0 }));
});

/** Takes the message this many times and gives it back at once, like workers that cannot reach its orchestrator. */
async function deliverAll(nats: TestNats, times: number): Promise<void> {
  const { jetstream } = await loadNats();
  const connection = await connect({ servers: nats.url });
  await ensureConsumer(jetstream, connection, stream, consumer);
  for (let delivered = 0; delivered < times; delivered++) {
    const message = await connection.request(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`, "1", { timeout: 10_000, noMux: true });
    message.respond(Buffer.from("-NAK"));
  }
  await connection.flush();
  await connection.close();
}
