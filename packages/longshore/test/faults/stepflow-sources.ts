// Where a misbehaving worker of Stepflow gets its tasks: from a stream of the orchestrator, or from a stream of NATS.
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { GrpcChannel } from "../../src/net/grpc/client.ts";
import { TaskAssignment } from "../../src/protocols/stepflow/wire/messages.ts";
import { TasksService } from "../../src/protocols/stepflow/wire/services.ts";

export interface TaskSource {
  channel: GrpcChannel;
  workerId: string;
  nats?: string | undefined;
  /** Ends the source, also while it waits. */
  signal: AbortSignal;
}

export function streamedTasks({ channel, workerId, signal }: TaskSource): AsyncGenerator<TaskAssignment> {
  return channel.serverStream(TasksService.PullTasks, { queueName: "python", workerId }, { signal });
}

const STREAM = "STEPFLOW_TASKS";
const CONSUMER = "stepflow-default";
/** The library allows no less than a second. */
const FETCH_MS = 1_000;

/** Acknowledges on receipt, as the reference's workers do: one that dies after that has lost the message. */
export async function* natsTasks({ nats, signal }: TaskSource): AsyncGenerator<TaskAssignment> {
  const connection = await connect({ servers: nats ?? "", reconnect: false, timeout: FETCH_MS });
  try {
    const manager = await jetstreamManager(connection);
    await manager.consumers.add(STREAM, { durable_name: CONSUMER, filter_subject: `${STREAM}.tasks`, ack_policy: "explicit" });
    const consumer = await jetstream(connection).consumers.get(STREAM, CONSUMER);
    while (!signal.aborted) {
      const message = await consumer.next({ expires: FETCH_MS });
      if (message === null) continue;
      message.ack();
      yield TaskAssignment.decode(message.data);
    }
  } finally {
    await connection.close();
  }
}
