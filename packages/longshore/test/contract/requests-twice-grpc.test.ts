// The same as in requests-twice.test.ts, for gRPC: every method is performed twice for a node.

import { expect, it } from "vitest";
import type { CarriedCall } from "../../src/cluster/carried-call.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import { GrpcCode } from "../../src/net/grpc/status.ts";
import type { Decoded, Encodable, Message, Rpc } from "../../src/net/protobuf/protobuf.ts";
import {
  BlobService,
  ComponentsService,
  FlowsService,
  HealthService,
  OrchestratorService,
  RunsService,
  TasksService,
} from "../../src/protocols/stepflow/wire/services.ts";
import { wireTaskId } from "../../src/protocols/stepflow/wire/task-id.ts";
import { type CarriedAnswer, carriedCallOf, type Owner, openOwner, temporaryFolder } from "../support/twice-world.ts";

/** It hands out tasks: when it is opened again, it continues with tasks that no worker has. */
const handsOut = TasksService.PullTasks.path;

/** Its response contains the time. */
const health = HealthService.HealthCheck.path;

/** A removed run does not exist: without the stored response, the owner cannot know that this request has removed it. */
const needsKeptAnswer = RunsService.DeleteRun.path;

const flow = { name: "f", steps: [{ id: "one", component: "/queue/one", input: {} }], output: { $step: "one" } };

/** Prepares and returns calls of each method. Calls that only read come last. */
async function calls(owner: Owner): Promise<CarriedCall[]> {
  const made: CarriedCall[] = [];
  const add = <Q extends Message, R extends Message>(rpc: Rpc<Q, R>, message: Encodable<Q>) => made.push(carriedCallOf(rpc, message));
  const need = async <Q extends Message, R extends Message>(rpc: Rpc<Q, R>, message: Encodable<Q>): Promise<Decoded<R>> => {
    const answer = await owner.performCall(carriedCallOf(rpc, message));
    if (answer.message === undefined) throw new Error(`${rpc.path} answered ${JSON.stringify(answer)}`);
    return rpc.response.decode(Buffer.from(answer.message, "base64")) as Decoded<R>;
  };
  const stored = async (name: string) => (await need(FlowsService.StoreFlow, { flow: { ...flow, name }, dryRun: false })).flowId as string;
  const flowId = await stored("runs");
  const begun = async () => (await need(RunsService.CreateRun, { flowId, input: [{}], wait: false })).summary?.runId as string;
  const cancelled = async () => {
    const runId = await begun();
    await need(RunsService.CancelRun, { runId });
    return runId;
  };
  const taken = async () => {
    const { reader, board } = owner.engine;
    const runId = await begun();
    const [waiting] = (await reader.tasks({ state: "queued", limit: 1 })).items;
    const reach = { names: [waiting?.lane?.name as string], labels: [] };
    const [task] = await board.claim({ reach, holder: "w", termMs: 600_000, max: 1 });
    return { taskId: wireTaskId(task as TaskRow), runId };
  };

  // This must happen before any other run waits for a worker.
  const beating = await taken();
  add(OrchestratorService.TaskHeartbeat, { ...beating, workerId: "w" });
  add(OrchestratorService.TaskHeartbeat, { ...(await taken()), workerId: "w", progress: 0.5, statusMessage: "half" });
  add(OrchestratorService.CompleteTask, { ...(await taken()), response: { output: { a: 1 } } });
  add(OrchestratorService.CompleteTask, { ...(await taken()), error: { code: 1, message: "no" } });
  add(FlowsService.StoreFlow, { flow: { ...flow, name: "stored" }, dryRun: false });
  add(FlowsService.DeleteFlow, { flowId: await stored("removed") });
  add(RunsService.CreateRun, { flowId, input: [{}, {}], wait: false });
  add(RunsService.CancelRun, { runId: await begun() });
  add(RunsService.DeleteRun, { runId: await cancelled() });
  const runRequest = { flowId, input: [{}], wait: false };
  add(OrchestratorService.SubmitRun, { runRequest, rootRunId: beating.runId });
  add(OrchestratorService.SubmitRun, { runRequest, rootRunId: beating.runId, subflowKey: "11111111-1111-4111-8111-111111111111" });
  add(BlobService.PutBlob, { jsonData: { a: 1 }, blobType: "data" });
  add(BlobService.PutBlob, { rawData: Buffer.from("bytes"), blobType: "binary", filename: "b" });

  const { blobId } = await need(BlobService.PutBlob, { jsonData: { b: 1 }, blobType: "data" });
  const runId = await cancelled();
  add(BlobService.GetBlob, { blobId });
  add(TasksService.GetOrchestratorForRun, { runId });
  add(OrchestratorService.GetRun, { runId, wait: false, includeResults: true, resultOrder: 0 });
  add(FlowsService.GetFlow, { flowId });
  add(FlowsService.GetFlowVariables, { flowId });
  add(RunsService.ListRuns, {} as never);
  add(RunsService.GetRun, { runId, wait: false });
  add(RunsService.GetRunItems, { runId, resultOrder: 0 });
  add(RunsService.GetRunFlow, { runId });
  add(RunsService.GetRunSteps, { runId });
  add(RunsService.GetStepDetail, { runId, stepId: "one" } as never);
  add(RunsService.GetRunEvents, { runId, eventTypes: [], includeSubRuns: false, includeResults: false });
  add(ComponentsService.ListRegisteredComponents, { excludeSchemas: false });
  add(HealthService.HealthCheck, {});
  return made;
}

/** The response; for a stream, its first pieces. */
async function answered(owner: Owner, call: CarriedCall, isRepeat = false): Promise<unknown> {
  const { stream, ...answer }: CarriedAnswer = await owner.performCall(call, isRepeat);
  return stream === undefined ? answer : owner.pull(stream);
}

async function performAll(owner: Owner) {
  const performed: { call: CarriedCall; first: unknown }[] = [];
  for (const call of await calls(owner)) performed.push({ call, first: await answered(owner, call) });
  return performed;
}

it("every method has a call in this test", async () => {
  const owner = await openOwner(temporaryFolder());
  const served = owner.methods.map(({ path }) => path).filter((path) => path !== handsOut);
  expect(new Set((await calls(owner)).map(({ path }) => path))).toEqual(new Set(served));
});

const shown = (path: string, answer: unknown) => ({ path, answer: path === health ? "healthy" : answer });

it("the same owner gives the same response to the same call and changes nothing", async () => {
  const owner = await openOwner(temporaryFolder());
  const performed = await performAll(owner);
  expect(performed.filter(({ first }) => (first as CarriedAnswer).status !== undefined)).toEqual([]);
  const before = owner.rows();
  for (const { call, first } of performed) expect(shown(call.path, await answered(owner, call, true))).toEqual(shown(call.path, first));
  expect(owner.rows()).toEqual(before);
});

for (const forgets of [false, true])
  it(`the next owner gives the same response and changes nothing${forgets ? ", even if responses were not stored" : ""}`, async () => {
    const folder = temporaryFolder();
    const first = await openOwner(folder, { forgets });
    const performed = await performAll(first);
    await first.close();
    const next = await openOwner(folder, { forgets });
    const before = next.rows();
    for (const { call, first: was } of performed) {
      const again = await answered(next, call, true);
      if (forgets && call.path === needsKeptAnswer) expect(again).toMatchObject({ status: { code: GrpcCode.NOT_FOUND } });
      else expect(shown(call.path, again)).toEqual(shown(call.path, was));
    }
    expect(next.rows()).toEqual(before);
  });

it("the same owner accepts the same list of a worker's components again but no different one, and the next owner requests the list again", async () => {
  const folder = temporaryFolder();
  const owner = await openOwner(folder);
  const asked = async (by: Owner) => {
    const { stream } = await by.performCall(carriedCallOf(TasksService.PullTasks, { queueName: "default", workerId: "w" } as never));
    const { pieces } = (await by.pull(stream as string)) as { pieces: { message: string }[] };
    return TasksService.PullTasks.response.decode(Buffer.from(pieces[0]?.message as string, "base64")).taskId;
  };
  const components = [{ componentId: "one", path: "/one" }];
  const answer = carriedCallOf(OrchestratorService.CompleteTask, { taskId: await asked(owner), listComponents: { components } });
  expect(await owner.performCall(answer)).toEqual({ message: "" });
  const before = owner.rows();
  expect(await owner.performCall(answer, true)).toEqual({ message: "" });
  const { id } = carriedCallOf(OrchestratorService.CompleteTask, { taskId: "" });
  expect(await owner.performCall({ ...answer, id })).toMatchObject({ status: { code: GrpcCode.NOT_FOUND } });
  expect(owner.rows()).toEqual(before);
  await owner.close();
  const next = await openOwner(folder);
  expect(await next.performCall(answer, true)).toMatchObject({ status: { code: GrpcCode.NOT_FOUND } });
  expect(await asked(next)).toMatch(/^discovery-/);
});
