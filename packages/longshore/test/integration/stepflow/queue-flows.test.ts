// Flows whose steps are done by workers of queues: where their tasks are sent, and what happens when workers or the server end.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { ExecutionStatus, TaskErrorCode } from "../../../src/protocols/stepflow/wire/messages.ts";
import { BlobService, RunsService, TasksService } from "../../../src/protocols/stepflow/wire/services.ts";
import { serve } from "../../../src/server/server.ts";
import { channelTo } from "../../support/grpc.ts";
import { temporaryFolder } from "../../support/parts.ts";
import { flowServer, step } from "../../support/stepflow-flows.ts";
import { PullingWorker } from "../../support/stepflow-queue.ts";

const chain = {
  name: "chain",
  steps: [step("one", "/python/echo"), step("two", "/python/echo", "one"), step("three", "/python/echo", "two")],
  output: { $step: "three" },
};

/** A configuration file with this text. */
function fileWith(text: string): string {
  const file = join(temporaryFolder(), "stepflow-config.yml");
  writeFileSync(file, text);
  return file;
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

describe("a flow", () => {
  it("[S-QUEUE-01, S-QUEUE-20, S-OBS-06] is done step by step by the worker of a queue, which gets run and step of each task", async () => {
    const { run, store, pull, perform, result, address, channel } = await flowServer();
    const ann = pull();
    await ann.register({ componentId: "echo", path: "/echo" });
    const runId = await run(chain, { n: 1 });
    const told = [];
    for (let at = 0; at < 3; at++) told.push(await perform(ann, (input) => ({ n: (input as { n: number }).n + 1 })));
    expect(await result(runId)).toMatchObject({ status: ExecutionStatus.COMPLETED, output: { n: 4 } });
    expect(runId).toMatch(uuid);
    // The id of the flow's definition, with which it can be read.
    const flowId = await store(chain);
    expect((await channel.unary(BlobService.GetBlob, { blobId: flowId })).jsonData).toEqual(chain);
    expect(told.map(({ execute }) => execute)).toMatchObject(
      ["one", "two", "three"].map((stepId, at) => ({
        componentId: "echo",
        input: { n: at + 1 },
        attempt: 1,
        observability: { runId, flowId, stepId },
      })),
    );
    for (const { context } of told) expect(context).toEqual({ orchestratorServiceUrl: address, rootRunId: runId });
    expect(await channel.unary(TasksService.GetOrchestratorForRun, { runId })).toEqual({ orchestratorServiceUrl: address });
  });

  it("[S-QUEUE-02, S-QUEUE-11, S9-34] uses the queues that routes and their plugins name, step by step", async () => {
    const config = fileWith(`plugins:
  workers: { type: grpc, queueName: cpu }
  others: { type: grpc, queueName: other }
routes:
  "/ml": [{ plugin: workers, params: { queueName: gpu } }]
  "/fast": [{ plugin: workers, queueName: quick }]
  "/other": [{ plugin: others }]
  "/": [{ plugin: workers }]
`);
    const { run, pull, perform, result } = await flowServer({ config });
    const [cpu, gpu, quick, other] = [pull("cpu", "a"), pull("gpu", "b"), pull("quick", "c"), pull("other", "d")];
    for (const worker of [cpu, gpu, quick, other]) await worker.register({ componentId: "echo", path: "/echo" });
    const steps = [
      step("one", "/ml/echo"),
      step("two", "/echo", "one"),
      step("three", "/fast/echo", "two"),
      step("four", "/other/echo", "three"),
    ];
    const runId = await run({ name: "routed", steps, output: { $step: "four" } }, "x");
    for (const [at, worker] of [gpu, cpu, quick, other].entries())
      expect((await perform(worker)).execute).toMatchObject({
        componentId: "echo",
        input: "x",
        observability: { stepId: ["one", "two", "three", "four"][at] },
      });
    expect(await result(runId)).toMatchObject({ status: ExecutionStatus.COMPLETED, output: "x" });
  });

  it("[S-QUEUE-11, S-QUEUE-12] uses patterns: one plugin serves several pools, and other components are built in", async () => {
    const config = fileWith(`plugins:
  workers:
    type: grpc
    queueName: default
  builtin: { type: builtin }
routes:
  "/ml/{*component}":
    - plugin: workers
      params:
        queueName: gpu
  "/python/{*component}":
    - plugin: workers
  "/{*component}":
    - plugin: builtin
`);
    const { run, pull, perform, result } = await flowServer({ config });
    const [plain, gpu] = [pull("default", "a"), pull("gpu", "b")];
    await plain.register({ componentId: "udf", path: "/udf" });
    await gpu.register({ componentId: "train", path: "/train/deep" });
    const steps = [step("one", "/ml/train/deep"), step("two", "/python/udf", "one"), step("three", "/noop", "two")];
    const runId = await run({ name: "patterns", steps, output: { $step: "three" } }, "x");
    expect((await perform(gpu)).execute).toMatchObject({ componentId: "train", observability: { stepId: "one" } });
    expect((await perform(plain)).execute).toMatchObject({ componentId: "udf", observability: { stepId: "two" } });
    expect(await result(runId)).toMatchObject({ status: ExecutionStatus.COMPLETED, output: "x" });
  });

  it("without a configuration is done by any worker with its component, also by one that connects later", async () => {
    const { run, pull, perform, result } = await flowServer();
    const flow = { name: "greet", steps: [step("one", "/greet"), step("two", "/greet", "one")], output: { $step: "two" } };
    const runId = await run(flow, { n: 1 });
    const stranger = pull("python", "stranger");
    await stranger.register({ componentId: "greet" });
    const leaving = pull("default", "leaving");
    await leaving.register({ componentId: "greet-1", path: "/greet" });
    expect((await leaving.next()).execute).toMatchObject({ componentId: "greet-1", input: { n: 1 }, attempt: 1 });
    await leaving.vanish();
    // The first step waited in the lanes of all protocols. The second is sent directly to the queue.
    const ann = pull("default", "ann");
    await ann.register({ componentId: "greet-1", path: "/greet" });
    for (let at = 0; at < 2; at++) {
      const { execute } = await perform(ann, (input) => ({ n: (input as { n: number }).n + 1 }));
      expect(execute).toMatchObject({ componentId: "greet-1", input: { n: at + 1 } });
    }
    expect(await result(runId)).toMatchObject({ status: ExecutionStatus.COMPLETED, output: { n: 3 } });
    expect(stranger.received).toEqual([]);
  });

  it("sends workers the address that the operator configures, without its scheme", async () => {
    const { run, pull, channel } = await flowServer({ orchestratorUrl: "http://orchestrator.example:7837/" });
    const ann = pull();
    await ann.register({ componentId: "echo" });
    const runId = await run(chain);
    expect((await ann.next()).context?.orchestratorServiceUrl).toBe("orchestrator.example:7837");
    expect(await channel.unary(TasksService.GetOrchestratorForRun, { runId })).toEqual({
      orchestratorServiceUrl: "orchestrator.example:7837",
    });
  });

  it("gives workers of a server with TLS an address with its scheme", async () => {
    const read = (name: string) => readFileSync(new URL(`../../fixtures/tls/${name}.pem`, import.meta.url), "utf8");
    const [cert, key] = [read("cert"), read("key")];
    const server = await serve({ ephemeral: true, port: 0, tls: { cert, key }, logger: { level: "silent" } });
    onTestFinished(() => server.close(0));
    const channel = channelTo(server.url as string, { tls: { ca: cert } });
    const { context } = await new PullingWorker(channel, "python", "ann").nextOfAny();
    expect(context?.orchestratorServiceUrl).toBe(`https://${new URL(server.url as string).host}`);
  });

  it("that is cancelled makes the worker of its step abort, and starts no other", async () => {
    const { run, pull, heartbeat, channel, summary } = await flowServer();
    const ann = pull();
    await ann.register({ componentId: "echo" });
    const runId = await run(chain);
    const { taskId } = await ann.next();
    await heartbeat(taskId);
    await channel.unary(RunsService.CancelRun, { runId });
    expect(await heartbeat(taskId)).toMatchObject({ shouldAbort: true });
    expect(await summary(runId)).toMatchObject({ status: ExecutionStatus.CANCELLED });
  });
});

describe("a worker", () => {
  it("[S9-30] that is killed in a step loses this step to the next worker, and earlier steps are not executed again", async () => {
    const { clock, run, pull, perform, heartbeat, result } = await flowServer();
    const ann = pull("python", "ann");
    await ann.register({ componentId: "echo" });
    const runId = await run(chain, "x");
    await perform(ann);
    const { taskId } = await ann.next();
    await heartbeat(taskId, "ann");
    await ann.vanish();
    const bob = pull("python", "bob");
    await clock.advance(5_000 + 1_000);
    const executed = [];
    for (let at = 0; at < 2; at++) executed.push((await perform(bob)).execute);
    expect(executed.map((execute) => [execute?.observability?.stepId, execute?.attempt])).toEqual([
      ["two", 2],
      ["three", 1],
    ]);
    expect(await result(runId)).toMatchObject({ status: ExecutionStatus.COMPLETED, output: "x" });
  });

  it("[S9-31] that stays down fails the run when the retries of the transport are used up", async () => {
    const { clock, run, pull, heartbeat, result, summary } = await flowServer();
    const ann = pull();
    await ann.register({ componentId: "echo" });
    const runId = await run(chain);
    await heartbeat((await ann.next()).taskId);
    await ann.vanish();
    const ended = result(runId);
    // Lost after 5 s, then three times 30 s in the queue, with 1, 1 and 2 s in between.
    await clock.advance(5_000 + 3 * 30_000 + 4_000 - 1);
    expect(await summary(runId)).toMatchObject({ status: ExecutionStatus.RUNNING });
    await clock.advance(1);
    expect(await ended).toMatchObject({ status: ExecutionStatus.FAILED, errorCode: TaskErrorCode.TIMEOUT });
  });

  it("[S9-32] that dies together with the server is replaced when both restart", async () => {
    let server = await flowServer();
    const ann = server.pull("python", "ann");
    await ann.register({ componentId: "echo" });
    const runId = await server.run(chain, "x");
    await server.perform(ann);
    await server.heartbeat((await ann.next()).taskId, "ann");
    await ann.vanish();
    server = await server.restart();
    const bob = server.pull("python", "bob");
    await server.clock.advance(5_000 + 1_000);
    const executed = [];
    for (let at = 0; at < 2; at++) executed.push((await server.perform(bob)).execute?.observability?.stepId);
    expect(executed).toEqual(["two", "three"]);
    expect(await server.result(runId)).toMatchObject({ status: ExecutionStatus.COMPLETED, output: "x" });
  });
});

describe("a restart", () => {
  it.each([
    ["at its place", false],
    ["elsewhere, with the data of the one that went", true],
  ])("[S9-29] %s in the middle of a flow within a flow continues it, and starts no ended step again", async (_, elsewhere) => {
    let server = await flowServer();
    const inner = await server.store({ name: "inner", steps: [step("work", "/python/echo")], output: { $step: "work" } });
    const evaluate = (id: string) => ({ id, component: "/builtin/eval", input: { flow_id: inner, input: id } });
    const outer = { name: "outer", steps: [evaluate("a"), evaluate("b")], output: { a: { $step: "a" }, b: { $step: "b" } } };
    let ann = server.pull();
    await ann.register({ componentId: "echo" });
    const runId = await server.run(outer);
    const first = await server.perform(ann);
    const second = await ann.next();
    await server.heartbeat(second.taskId);
    const { address } = server;
    server = await server.restart({ elsewhere });
    expect(server.address === address).toBe(!elsewhere);
    await server.complete({ taskId: second.taskId, response: { output: second.execute.input ?? null } });
    const { output } = await server.result(runId);
    expect(output).toMatchObject({ a: { result: { outcome: "success", result: "a" } }, b: { result: { result: "b" } } });
    expect([first.execute?.input, second.execute.input].sort()).toEqual(["a", "b"]);
    for (const { context } of [first, second]) expect(context?.rootRunId).toBe(runId);
    ann = server.pull();
    const again = await server.run({ name: "last", steps: [step("last", "/python/echo")], output: { $step: "last" } }, "none before");
    expect((await server.perform(ann)).execute?.input).toBe("none before");
    await server.result(again);
  });
});
