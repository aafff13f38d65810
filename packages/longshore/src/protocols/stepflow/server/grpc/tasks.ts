// TasksService: workers pull tasks and find the orchestrator of a run.

import type { Runs } from "../../../../engine/run/runs.ts";
import type { GrpcMethod } from "../../../../net/grpc/service.ts";
import { serverStream, unary } from "../../../../net/grpc/service.ts";
import type { GrpcError } from "../../../../net/grpc/status.ts";
import { TasksService } from "../../wire/services.ts";
import type { Addresses } from "../address.ts";
import type { Queues } from "../queue/queues.ts";
import { invalid, notFound, precondition, runIdIn } from "../refuse.ts";
import { type PullDeps, PullStream } from "./pull.ts";

export interface TasksDeps extends Omit<PullDeps, "held" | "unclaimed"> {
  readonly queues: Queues;
  readonly runs: Pick<Runs, "run">;
  readonly addresses: Addresses;
}

/** Programs make the names of workers and queues; a longer one is a mistake. */
const nameCharsMax = 512;

export function tasksMethods(deps: TasksDeps): GrpcMethod[] {
  const { queues, runs, addresses, clock, workers } = deps;
  return [
    serverStream(TasksService.PullTasks, "task.claim", ({ queueName, workerId }, call, sink) => {
      if (queueName === "") throw invalid("queue_name", "is empty, expected the name of a queue");
      if (workerId.length > nameCharsMax) throw invalid("worker_id", `has ${workerId.length} characters, expected at most ${nameCharsMax}`);
      const found = queues.find(queueName);
      if (found === undefined) throw notFound("queue", queueName);
      if (!found.backends.has("grpc")) throw notPulled(queueName);
      const url = addresses.forCaller(call.authority);
      const stream = { queue: found.queue, workerId: workerId || call.peer, url, gone: call.gone, sink };
      return new PullStream({ clock, workers, held: queues.held, unclaimed: queues.unclaimed }, stream).serve();
    }),
    unary(TasksService.GetOrchestratorForRun, "run.locate", async ({ runId }, call) => {
      if ((await runs.run(runIdIn("run_id", runId))) === undefined) throw notFound("run", runId);
      return { orchestratorServiceUrl: addresses.forCaller(call.authority) };
    }),
  ];
}

function notPulled(queue: string): GrpcError {
  return precondition("QUEUE_NOT_PULLABLE", `queue '${queue}' is a NATS stream: connect to NATS to take its tasks`, { queue });
}
