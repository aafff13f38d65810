// The attacker holds a worker token, which REST refuses on /api/v1/flows and /api/v1/runs. But workers may store blobs, and may start runs
// for their tasks. Once this was enough to run any flow. Now a worker can start runs only for a task that it holds. Their flow must be one
// that an operator stored or that the flow of its run names.

import { describe, expect, it, onTestFinished } from "vitest";
import type { Json, JsonObject } from "../../src/core/json/json.ts";
import { type GrpcChannel, openChannel } from "../../src/net/grpc/client.ts";
import { GrpcCode } from "../../src/net/grpc/status.ts";
import { ExecutionStatus } from "../../src/protocols/stepflow/wire/messages.ts";
import { BlobService, FlowsService, OrchestratorService, RunsService } from "../../src/protocols/stepflow/wire/services.ts";
import { serve } from "../../src/server/index.ts";
import { temporaryFolder } from "../support/parts.ts";
import { PullingWorker } from "../support/stepflow-queue.ts";
import { oneStep } from "../support/stepflow-server.ts";

const secrets = {
  operator: "operator-secret-0123456789",
  ann: "ann-secret-0123456789",
  mallory: "mallory-secret-0123456789",
  reader: "reader-secret-0123456789",
};
const tokens = [
  `operator:${secrets.operator}:operator`,
  `worker:${secrets.ann}:ann`,
  `worker:${secrets.mallory}:mallory`,
  `read:${secrets.reader}:reader`,
];

const evil = oneStep("/builtin/noop", "anything that an operator did not write");
const helper = oneStep("/builtin/noop", { $input: "$" }, { name: "helper" });
const echo = (input: Json): JsonObject => oneStep("/python/echo", input, { name: "outer" });

type Who = keyof typeof secrets;

async function production(data = temporaryFolder(), port = 0) {
  const server = await serve({ data, port, tokens, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const channels = {} as Record<Who, GrpcChannel>;
  for (const [who, secret] of Object.entries(secrets)) {
    const channel = openChannel(server.url as string, { metadata: { authorization: `Bearer ${secret}` } });
    onTestFinished(() => channel.close());
    channels[who as Who] = channel;
  }
  const { operator } = channels;
  const store = async (flow: JsonObject) => (await operator.unary(FlowsService.StoreFlow, { flow })).flowId;
  const start = async (flow: JsonObject, input: Json[] = [null]) =>
    (await operator.unary(RunsService.CreateRun, { flowId: await store(flow), input })).summary?.runId as string;
  const blob = async (who: Who, flow: JsonObject) =>
    (await channels[who].unary(BlobService.PutBlob, { jsonData: flow, blobType: "flow" })).blobId;
  const submit = (who: Who, flowId: string, rootRunId?: string, more: JsonObject = {}) =>
    channels[who].unary(OrchestratorService.SubmitRun, {
      runRequest: { flowId, input: ["x"], wait: true, ...more },
      ...(rootRunId === undefined ? {} : { rootRunId }),
    });
  /** A worker that claims the next task. */
  const take = async (who: Who) => {
    const worker = new PullingWorker(channels[who], "python", who);
    await worker.register({ componentId: "echo" });
    const { taskId, context } = await worker.next();
    await beat(who, taskId);
    return { taskId, root: context?.rootRunId as string };
  };
  const beat = (who: Who, taskId: string) => channels[who].unary(OrchestratorService.TaskHeartbeat, { taskId, workerId: who });
  const complete = (who: Who, taskId: string) =>
    channels[who].unary(OrchestratorService.CompleteTask, { taskId, response: { output: null } });
  return { server, data, channels, store, start, blob, submit, take, beat, complete };
}

const refused = { code: GrpcCode.PERMISSION_DENIED };
const done = { status: ExecutionStatus.COMPLETED };

describe("a worker token", () => {
  it("starts no run without a task, neither of a blob nor of a stored flow", async () => {
    const { store, blob, submit } = await production();
    for (const flowId of [await blob("mallory", evil), await store(helper)])
      await expect(submit("mallory", flowId)).rejects.toMatchObject(refused);
    expect(await submit("operator", await blob("mallory", evil))).toMatchObject(done);
  });

  it("starts no run for a task that another token holds, or that no worker holds", async () => {
    const { channels, start, store, submit, take } = await production();
    const runId = await start(echo(1));
    const flowId = await store(helper);
    await expect(submit("ann", flowId, runId)).rejects.toMatchObject(refused);
    const { taskId, root } = await take("ann");
    await expect(submit("mallory", flowId, root)).rejects.toMatchObject(refused);
    // Knowing the task and the name of its worker does not count as a hold.
    for (const workerId of ["mallory", "ann"]) await channels.mallory.unary(OrchestratorService.TaskHeartbeat, { taskId, workerId });
    await expect(submit("mallory", flowId, root)).rejects.toMatchObject(refused);
    expect(await submit("ann", flowId, root)).toMatchObject(done);
  });

  it("starts no flow that a worker stored, also when it holds a task and a reader has read the flow", async () => {
    const { channels, start, blob, submit, take } = await production();
    await start(echo(1));
    const { root } = await take("ann");
    const flowId = await blob("ann", evil);
    await expect(submit("ann", flowId, root)).rejects.toMatchObject(refused);
    expect(await channels.reader.unary(FlowsService.GetFlow, { flowId })).toMatchObject({ flowId });
    await channels.reader.unary(FlowsService.GetFlowVariables, { flowId });
    await expect(submit("ann", flowId, root)).rejects.toMatchObject(refused);
  });

  it("cannot change a stored flow with overrides", async () => {
    const { start, store, submit, take } = await production();
    await start(echo(1));
    const { root } = await take("ann");
    const overrides = { s: { value: { component: "/builtin/load_file" } } };
    await expect(submit("ann", await store(helper), root, { overrides })).rejects.toMatchObject(refused);
  });

  it("starts a flow that the flow of its run names, when only its blob is stored", async () => {
    const { start, blob, submit, take } = await production();
    const flowId = await blob("operator", helper);
    await start(echo({ call: flowId }));
    const { root } = await take("ann");
    expect(await submit("ann", flowId, root)).toMatchObject(done);
  });

  it("starts runs for the item of a run that it works on, but not after the item is done", async () => {
    const { start, store, submit, take, complete } = await production();
    const flowId = await store(helper);
    const runId = await start(echo({ $input: "$" }), [1, 2]);
    const { taskId, root } = await take("ann");
    expect(root).toBe(runId);
    expect(await submit("ann", flowId, root)).toMatchObject({ ...done, rootRunId: runId });
    await complete("ann", taskId);
    await expect(submit("ann", flowId, root)).rejects.toMatchObject(refused);
  });

  it("can start runs again for a task that it held before a restart, from its next heartbeat on", async () => {
    const before = await production();
    const flowId = await before.store(helper);
    await before.start(echo(1));
    const { taskId, root } = await before.take("ann");
    await before.server.close(0);
    const { submit, beat } = await production(before.data, before.server.port as number);
    await expect(submit("ann", flowId, root)).rejects.toMatchObject(refused);
    await beat("ann", taskId);
    expect(await submit("ann", flowId, root)).toMatchObject(done);
  });

  it("reads runs of the families that it works for, and no others", async () => {
    const { channels, start, store, submit, take } = await production();
    const other = await start(helper);
    await start(echo(1));
    const { root } = await take("ann");
    const sub = await submit("ann", await store(helper), root);
    const get = (who: Who, runId: string) => channels[who].unary(OrchestratorService.GetRun, { runId, includeResults: true });
    for (const runId of [root, sub.runId]) expect(await get("ann", runId)).toMatchObject({ runId });
    await expect(get("ann", other)).rejects.toMatchObject(refused);
    await expect(get("mallory", sub.runId)).rejects.toMatchObject(refused);
    expect(await get("operator", other)).toMatchObject({ runId: other });
  });
});
