// A whole server with a test clock, with flows over its API and workers on its queues.

import { onTestFinished } from "vitest";
import type { Json, JsonObject } from "../../src/core/json/json.ts";
import type { GrpcChannel } from "../../src/net/grpc/client.ts";
import type { Encodable } from "../../src/net/protobuf/protobuf.ts";
import type { RunSummary, StepStatus } from "../../src/protocols/stepflow/wire/api-messages.ts";
import type { CompleteTaskRequest, ItemResult, TaskAssignment } from "../../src/protocols/stepflow/wire/messages.ts";
import { FlowsService, OrchestratorService, RunsService } from "../../src/protocols/stepflow/wire/services.ts";
import { serve } from "../../src/server/server.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { channelTo } from "./grpc.ts";
import { temporaryFolder } from "./parts.ts";
import { PullingWorker } from "./stepflow-queue.ts";

export interface FlowServer {
  readonly clock: TestClock;
  readonly url: string;
  /** The address that workers get. */
  readonly address: string;
  readonly channel: GrpcChannel;
  store(flow: JsonObject): Promise<string>;
  /** Starts a run of a flow for one input and returns its id. */
  run(flow: JsonObject, input?: Json): Promise<string>;
  summary(runId: string): Promise<RunSummary>;
  steps(runId: string): Promise<StepStatus[]>;
  /** Waits for its end. */
  result(runId: string): Promise<ItemResult>;
  pull(queue?: string, workerId?: string): PullingWorker;
  /** Claims a task and finishes it with the result of `make`. */
  perform(worker: PullingWorker, make?: (input: Json) => Json): Promise<TaskAssignment>;
  heartbeat(taskId: string, workerId?: string): Promise<unknown>;
  complete(request: Encodable<typeof CompleteTaskRequest>): Promise<unknown>;
  /** Closes it and opens another on the same data, at the same port by default. */
  restart(options?: { elsewhere?: boolean }): Promise<FlowServer>;
  close(): Promise<void>;
}

export interface FlowServerParts {
  data?: string;
  clock?: TestClock;
  port?: number;
  config?: string;
  orchestratorUrl?: string;
}

export async function flowServer(parts: FlowServerParts = {}): Promise<FlowServer> {
  const { data = temporaryFolder(), clock = new TestClock(), config, orchestratorUrl } = parts;
  const stepflow = { ...(config === undefined ? {} : { config }), ...(orchestratorUrl === undefined ? {} : { orchestratorUrl }) };
  const server = await serve({ data, clock, port: parts.port ?? 0, stepflow, logger: { level: "silent" } });
  const url = server.url as string;
  const address = new URL(url).host;
  const channel = channelTo(address);
  onTestFinished(() => server.close(0));
  const heartbeat = (taskId: string, workerId = "ann") => channel.unary(OrchestratorService.TaskHeartbeat, { taskId, workerId });
  const complete = (request: Encodable<typeof CompleteTaskRequest>) => channel.unary(OrchestratorService.CompleteTask, request);
  const store = async (flow: JsonObject) => (await channel.unary(FlowsService.StoreFlow, { flow })).flowId;
  return {
    ...{ clock, url, address, channel, heartbeat, complete, store, close: () => server.close(0) },
    async run(flow, input = null) {
      const { summary } = await channel.unary(RunsService.CreateRun, { flowId: await store(flow), input: [input] });
      return summary?.runId ?? "";
    },
    async summary(runId) {
      return (await channel.unary(RunsService.GetRun, { runId })).summary as RunSummary;
    },
    async steps(runId) {
      return (await channel.unary(RunsService.GetRunSteps, { runId })).steps;
    },
    async result(runId) {
      await channel.unary(RunsService.GetRun, { runId, wait: true });
      return (await channel.unary(RunsService.GetRunItems, { runId })).results[0] as ItemResult;
    },
    pull: (queue = "python", workerId = "ann") => new PullingWorker(channelTo(address), queue, workerId),
    async perform(worker, make = (input) => input) {
      const assignment = await worker.next();
      await heartbeat(assignment.taskId, worker.workerId);
      await complete({ taskId: assignment.taskId, response: { output: make(assignment.execute.input ?? null) } });
      return assignment;
    },
    async restart({ elsewhere = false } = {}) {
      await server.close(0);
      return flowServer({ ...parts, data, clock, port: elsewhere ? 0 : (server.port as number) });
    },
  };
}

/** A step that calls a component with the output of another, or with the flow's input. */
export function step(id: string, component: string, from?: string): JsonObject {
  return { id, component, input: from === undefined ? { $input: "$" } : { $step: from } };
}
