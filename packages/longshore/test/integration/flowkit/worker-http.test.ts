// Workers in separate processes need only a server: its address is both broker and store.

import { graph, type Ref, task, work } from "longshore";
import { conductor } from "longshore/conductor";
import { Batch, BatchResult, flowkit, RoleHandler, streamTask, Worker, WorkerConfig } from "longshore/flowkit";
import { serve } from "longshore/server";
import { workflowGraph } from "longshore/workflow-graph";
import { describe, expect, it, onTestFinished } from "vitest";
import { TestClock } from "../../../src/testing/clock.ts";
import { deferred, until } from "../../support/until.ts";

async function setup() {
  const server = await serve({ ephemeral: true, port: 0 });
  onTestFinished(() => server.close());
  const create = (graph: object) => server.flowkit?.createTask({ graph }) as Promise<string>;
  return { server, url: server.url as string, create };
}

describe("a worker on a server's address", () => {
  it("streams batches from node to node", async () => {
    const { server, url, create } = await setup();
    const counted: number[] = [];
    const indexer = streamTask("indexer", async function* () {
      for (let at = 0; at < 4; at++) yield { skus: [at, at] };
      return { total: 8 };
    });
    const analyzer = streamTask("analyzer", {
      processBatch: ({ payload }) => {
        counted.push((payload.items as unknown[]).length);
        return { count: (payload.items as unknown[]).length };
      },
      finalize: () => ({ pieces: counted.length }),
    });
    await using _worker = await work({ tasks: [indexer, analyzer], on: flowkit(url), signals: false, logger: false });
    const input_args = { from_nodes: ["u"], size: 2, meta_list_key: "skus" };
    const input_inline = { input_adapter: "pull.from_artifacts.rechunk:size", input_args };
    const id = await create({
      nodes: [
        { node_id: "u", type: "indexer" },
        { node_id: "d", type: "analyzer", depends_on: ["u"], io: { start_when: "first_batch", input_inline } },
      ],
    });
    expect(await server.result(id)).toMatchObject({ state: "succeeded" });
    expect(counted).toEqual([2, 2, 2, 2]);
  });

  it("runs the reference's classes, given the address as their database", async () => {
    const { server, url, create } = await setup();
    class Probe extends RoleHandler {
      override readonly role = "probe";

      override async *iter_batches() {
        yield new Batch({ batch_uid: "b1", payload: { items: [1, 2, 3] } });
      }

      override async process_batch(batch: Batch) {
        return new BatchResult({ success: true, metrics: { count: (batch.payload.items as unknown[]).length } });
      }
    }
    const cfg = new WorkerConfig({ roles: ["probe"] });
    await using worker = new Worker({ db: url, cfg, handlers: { probe: new Probe() }, logger: false });
    await worker.start();
    const id = await create({ nodes: [{ node_id: "n", type: "probe" }] });
    expect(await server.result(id)).toMatchObject({ state: "succeeded" });
  });

  it("runs the steps of other dialects, and their output is what the task returned", async () => {
    const { server, url } = await setup();
    const greet = task("greet", ({ name }: { name: string }) => ({ text: `Hello ${name}` }));
    await using _worker = await work({ tasks: [greet], on: flowkit(url), signals: false, logger: false });
    const greeting = graph("greeting", (g, input: Ref<{ name: string }>) => g.step(greet, { name: input.name }));
    const run = await server.start(greeting, { name: "Ada" });
    expect(await server.result(run.id)).toMatchObject({ state: "succeeded", output: { text: "Hello Ada" } });
  });

  it("can be replaced by a worker of any protocol, whose handler gets the same input", async () => {
    const { server, url, create } = await setup();
    const given: unknown[] = [];
    const greet = task("greet", (input: object) => void given.push(input));
    for (const on of [flowkit(url), conductor(`${url}/api`), workflowGraph(url), server]) {
      await using _worker = await work({ tasks: [greet], on, signals: false, logger: false });
      const id = await create({ nodes: [{ node_id: "n", type: "greet", io: { input_inline: { name: "Ada" } } }] });
      expect(await server.result(id)).toMatchObject({ state: "succeeded" });
    }
    expect(given).toEqual(Array.from({ length: 4 }, () => ({ name: "Ada" })));
  });

  it("is cancelled by the server while it waits", async () => {
    const { server, url, create } = await setup();
    const started = deferred<AbortSignal>();
    const slow = streamTask("slow", {
      processBatch: (_batch, ctx) => {
        started.resolve(ctx.signal);
        return ctx.cancellable(new Promise(() => {}));
      },
    });
    await using _worker = await work({ tasks: [slow], on: flowkit(url), signals: false, logger: false });
    const id = await create({ nodes: [{ node_id: "n", type: "slow" }] });
    const signal = await started.promise;
    await server.flowkit?.cancelTask(id, "user_request");
    expect(await server.result(id)).toMatchObject({ state: "cancelled" });
    // The run ends as soon as no part of it is wanted, while the signal is being sent.
    await until(() => signal.aborted);
    expect((signal.reason as Error).message).toBe("user_request");
  });

  it("stops at once while its server is down", async () => {
    const { server, url } = await setup();
    await server.close(0);
    const clock = new TestClock();
    const starting = work({ tasks: [task("greet", () => 1)], on: flowkit(url), signals: false, logger: false, clock });
    await clock.armed(15_000, 1);
    await clock.advance(15_000);
    const worker = await starting;
    // Any wait would use this clock, which does not move.
    await worker.stop();
  });
});
