// What an operator can see about FlowKit tasks that make no progress.

import { expect, it, onTestFinished } from "vitest";
import { openHttpBus } from "../../../src/bus/http.ts";
import { sentTasks } from "../../../src/engine/board/queue-state.ts";
import type { TaskRow } from "../../../src/engine/board/task.ts";
import { flowkit } from "../../../src/protocols/flowkit/worker/index.ts";
import { streamTask } from "../../../src/protocols/flowkit/worker/stream-task.ts";
import { serve } from "../../../src/server/server.ts";
import { work } from "../../../src/work.ts";
import { node } from "../../support/flowkit-graphs.ts";
import { openFlowkit } from "../../support/flowkit-world.ts";
import { untilElsewhere as until } from "../../support/until.ts";

it("the run shows that its node waits for a broker that cannot be reached", async () => {
  // No server listens at this port.
  const server = await serve({ ephemeral: true, port: 0, logger: { write: () => {} }, flowkit: { brokers: "127.0.0.1:1" } });
  onTestFinished(() => server.close());
  const id = (await server.flowkit?.createTask({ graph: { nodes: [node("a", "indexer")] } })) as string;
  const step = async () => {
    const answer = await fetch(`${server.url}/api/longshore/v1/runs/${id}/steps`);
    return ((await answer.json()) as { items: { waiting?: { reason: string; text: string } }[] }).items[0];
  };
  const told = await until(async () => {
    const { waiting } = (await step()) ?? {};
    return waiting?.reason === "unreachable" && waiting;
  });
  expect(told.text).toMatch(/^no worker is connected, as far as is known: Kafka at 127\.0\.0\.1:1 has been out of reach for \d+ s \(.+\)$/);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  expect(metrics).toMatch(/^longshore_flowkit_bus_reachable 0$/m);
  expect(metrics).toMatch(/^longshore_flowkit_outbox_pending 0$/m);
});

it("metrics count the events of workers, and those without effect", async () => {
  const server = await serve({ ephemeral: true, port: 0, logger: { write: () => {} } });
  onTestFinished(() => server.close());
  const bus = openHttpBus({ url: `${server.url}/flowkit/v1/bus` });
  onTestFinished(() => bus.close());
  await bus.publish([{ topic: "workers.announce.v1", key: null, value: "no JSON" }]);
  const metrics = await until(async () => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    return text.includes('longshore_flowkit_ignored_total{why="malformed"} 1') && text;
  });
  expect(metrics).toMatch(/^longshore_flowkit_commands_total\{how="started"\} 0$/m);
  expect(metrics).toMatch(/^longshore_flowkit_bus_reachable 1$/m);
  expect(metrics).not.toContain("longshore_flowkit_outbox");
});

it("metrics count the batches of a worker that stores them on this server and sends no events", async () => {
  const server = await serve({ ephemeral: true, port: 0, logger: { write: () => {} } });
  onTestFinished(() => server.close());
  const pages = streamTask("pages", {
    *iterBatches() {
      for (const page of [1, 2, 3]) yield { batch_uid: `p${page}`, payload: { page } };
    },
    processBatch: ({ payload }) => payload,
  });
  const worker = await work({ tasks: [pages], on: flowkit(server.url as string), signals: false, logger: false });
  onTestFinished(() => worker.stop({ force: true }));
  const id = (await server.flowkit?.createTask({ graph: { nodes: [node("a", "pages")] } })) as string;
  await server.result(id);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  expect(metrics).toMatch(/^longshore_flowkit_batches_total\{how="done"\} 3$/m);
});

it("a command is shown as sent until a worker accepts it", async () => {
  const world = await openFlowkit();
  const worker = await world.worker("w", ["indexer"]);
  const run = await world.submit({ nodes: [node("a", "indexer")] });
  const offered = await world.inState(run, "a", "offered");
  await world.until(async () => world.coordinator.carries(offered));
  const carrier = { protocol: "flowkit", trouble: () => null, carries: (task: TaskRow) => world.coordinator.carries(task) };
  world.engine.carriers.add(carrier);
  expect([...(await sentTasks(world.engine)).values()]).toMatchObject([
    { lane: { name: "indexer" }, count: 1, oldest: { id: offered.id } },
  ]);
  await worker.accept();
  expect(world.coordinator.carries(await world.inState(run, "a", "held"))).toBe(false);
  expect((await sentTasks(world.engine)).size).toBe(0);
});
