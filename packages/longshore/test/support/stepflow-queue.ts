// The queues of a server with only the gRPC services, a test clock, and workers whose actions the test scripts.

import { onTestFinished } from "vitest";
import { LongshoreError } from "../../src/core/errors.ts";
import type { Json } from "../../src/core/json/json.ts";
import { laneOf } from "../../src/engine/board/lanes.ts";
import type { NewTaskRow } from "../../src/engine/board/store.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import type { GrpcChannel } from "../../src/net/grpc/client.ts";
import { GrpcCode, GrpcError } from "../../src/net/grpc/status.ts";
import type { Encodable } from "../../src/net/protobuf/protobuf.ts";
import { addressesOf } from "../../src/protocols/stepflow/server/address.ts";
import { queueLane } from "../../src/protocols/stepflow/server/config/queues.ts";
import { orchestratorMethods } from "../../src/protocols/stepflow/server/grpc/orchestrator.ts";
import { tasksMethods } from "../../src/protocols/stepflow/server/grpc/tasks.ts";
import { type Backend, Queues } from "../../src/protocols/stepflow/server/queue/queues.ts";
import type {
  CompleteTaskRequest,
  TaskAssignment,
  TaskHeartbeatRequest,
  TaskHeartbeatResponse,
} from "../../src/protocols/stepflow/wire/messages.ts";
import { OrchestratorService, TasksService } from "../../src/protocols/stepflow/wire/services.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { type OpenEngine, openEngineWithStore } from "./engine.ts";
import { channelTo, startGrpc, type TestGrpc } from "./grpc.ts";
import { until } from "./until.ts";

export interface QueueWorld {
  readonly clock: TestClock;
  readonly engine: OpenEngine;
  readonly queues: Queues;
  readonly grpc: TestGrpc;
  /** For reports, from any sender. */
  readonly channel: GrpcChannel;
  post(id: string, parts?: Partial<NewTaskRow> & { queue?: string; component?: string; given?: Json }): Promise<void>;
  task(id: string): Promise<TaskRow>;
  /** Waits until the task has the expected state. Time does not pass meanwhile. */
  becomes(id: string, state: TaskRow["state"]): Promise<TaskRow>;
  pull(queue?: string, workerId?: string): PullingWorker;
  heartbeat(taskId: string, workerId?: string, more?: Partial<TaskHeartbeatRequest>): Promise<TaskHeartbeatResponse>;
  complete(request: Encodable<typeof CompleteTaskRequest>): Promise<unknown>;
  /** Everything except the file goes, as when the process is killed, and comes back under the same address. */
  restart(): Promise<QueueWorld>;
  close(): Promise<void>;
}

export interface WorldParts {
  queues?: readonly { name: string; backend: Backend }[];
  directory?: string | null;
  clock?: TestClock;
  port?: number;
}

/** Any plugin is right: only the name of its queue matters. */
type Configured = ConstructorParameters<typeof Queues>[1];

export async function queueWorld(parts: WorldParts = {}): Promise<QueueWorld> {
  const clock = parts.clock ?? new TestClock();
  const engine = await openEngineWithStore({ directory: parts.directory ?? null, clock });
  const configured = parts.queues ?? [
    { name: "python", backend: "grpc" },
    { name: "gpu", backend: "grpc" },
  ];
  const queues = new Queues(engine, configured as Configured);
  let address = "";
  const addresses = addressesOf(undefined, () => address);
  const methods = [...tasksMethods({ ...engine, queues, addresses }), ...orchestratorMethods({ reports: queues.reports })];
  const grpc = await startGrpc(methods, { host: { explain }, ...(parts.port === undefined ? {} : { port: parts.port }) });
  address = grpc.target;
  const channel = channelTo(grpc.target);
  let closed = false;
  const close = async () => {
    if (closed) return;
    closed = true;
    grpc.grpc.drain();
    engine.board.dismiss();
    if (grpc.sockets.size > 0 || grpc.open.size > 0) await grpc.crash();
    queues.close();
    await engine.close();
  };
  onTestFinished(close);
  const task = async (id: string) => {
    const found = await engine.board.task(id);
    if (found === undefined) throw new Error(`There is no task ${id}.`);
    return found;
  };
  return {
    ...{ clock, engine, queues, grpc, channel, task, close },
    async post(id, { queue = "python", component = "/echo", given = null, ...more } = {}) {
      const input = JSON.stringify({ component, input: given });
      await engine.store.board.post([{ id, step: "s1", lanes: [laneOf(queueLane(queue))], input, policy: null, ...more }]);
    },
    async becomes(id, state) {
      let found = await task(id);
      const stop = engine.listen({
        task: (changed) => {
          if (changed.id === id) found = changed;
        },
      });
      found = await task(id);
      await until(() => found.state === state);
      stop();
      return found;
    },
    pull: (queue = "python", workerId = "ann") => new PullingWorker(channelTo(grpc.target), queue, workerId),
    heartbeat: (taskId, workerId = "ann", more = {}) => channel.unary(OrchestratorService.TaskHeartbeat, { taskId, workerId, ...more }),
    complete: (request) => channel.unary(OrchestratorService.CompleteTask, request),
    async restart() {
      await grpc.crash();
      queues.close();
      closed = true;
      await engine.close();
      return queueWorld({ ...parts, clock, port: grpc.port });
    },
  };
}

/** The address as the server's listener reports it. */
function explain(error: unknown): GrpcError {
  const code = error instanceof LongshoreError ? error.code : "";
  const codes: { readonly [code: string]: GrpcCode } = {
    LONGSHORE_BAD_INPUT: GrpcCode.INVALID_ARGUMENT,
    LONGSHORE_STORE_UNAVAILABLE: GrpcCode.UNAVAILABLE,
  };
  return new GrpcError(codes[code] ?? GrpcCode.INTERNAL, (error as Error).message);
}

/** A PullTasks stream that a test reads by hand. */
export class PullingWorker {
  readonly workerId: string;
  /** Everything that came and was not requested yet. */
  readonly received: TaskAssignment[] = [];
  /** How the stream ended; undefined while it is open, null when it ended normally. */
  ended: GrpcError | null | undefined;
  readonly #channel: GrpcChannel;
  readonly #leaving = new AbortController();

  constructor(channel: GrpcChannel, queueName: string, workerId: string) {
    this.workerId = workerId;
    this.#channel = channel;
    void this.#read(queueName);
  }

  /** The next task. Requests for the list of components are skipped. */
  async next(): Promise<TaskAssignment & { execute: NonNullable<TaskAssignment["execute"]> }> {
    for (;;) {
      const found = await this.nextOfAny();
      if (found.execute !== undefined) return found as never;
    }
  }

  async nextOfAny(): Promise<TaskAssignment> {
    await until(() => this.received.length > 0 || this.ended !== undefined);
    const first = this.received.shift();
    if (first === undefined) throw this.ended ?? new Error("The stream has ended.");
    return first;
  }

  /** Returns the first message of every stream: the request for the list of components. */
  async register(...components: { componentId: string; path?: string; description?: string; inputSchema?: string }[]): Promise<void> {
    const { taskId, listComponents } = await this.nextOfAny();
    if (listComponents === undefined) throw new Error("The first assignment does not ask for components.");
    const named = components.map((component) => ({ path: "", ...component }));
    await this.#channel.unary(OrchestratorService.CompleteTask, { taskId, listComponents: { components: named } });
  }

  /** The worker cancels its stream. */
  leave(): void {
    this.#leaving.abort();
  }

  /** The worker's process ends. */
  async vanish(): Promise<void> {
    await this.#channel.close();
  }

  async #read(queueName: string): Promise<void> {
    const { workerId } = this;
    try {
      const stream = this.#channel.serverStream(TasksService.PullTasks, { queueName, workerId }, { signal: this.#leaving.signal });
      for await (const assignment of stream) this.received.push(assignment);
      this.ended = null;
    } catch (error) {
      this.ended = error as GrpcError;
    }
  }
}
