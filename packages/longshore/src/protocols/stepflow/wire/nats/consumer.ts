// The durable consumer that the workers of a queue share. It is created when it is missing, as the reference's workers do. The orchestrator
// creates the stream.

import { LongshoreError } from "../../../../core/errors.ts";
import type { JetStream, NatsConnection } from "./client.ts";

/** As the reference's workers create it. */
const ackWaitMs = 30_000;
const ackPendingMax = 1_000;

/** Values of `err_code` in answers of the NATS server. */
const streamNotFound = 10_059;
const consumerNotFound = 10_014;
const notUnique = 10_100;
/** The error that the client throws when JetStream is off for the server or the account. */
const jetStreamOff = "JetStreamNotEnabled";

const nanosPerMs = 1_000_000;

/** Rejects with an error that says what to do. */
export async function ensureConsumer(js: JetStream, connection: NatsConnection, stream: string, consumer: string): Promise<void> {
  try {
    const manager = await js.jetstreamManager(connection, { checkAPI: false });
    try {
      await manager.consumers.info(stream, consumer);
    } catch (error) {
      if (codeOf(error) !== consumerNotFound) throw error;
      await manager.consumers.add(stream, {
        durable_name: consumer,
        filter_subject: `${stream}.tasks`,
        deliver_policy: js.DeliverPolicy.All,
        ack_policy: js.AckPolicy.Explicit,
        ack_wait: ackWaitMs * nanosPerMs,
        max_deliver: -1,
        max_ack_pending: ackPendingMax,
      });
    }
  } catch (error) {
    throw explained(error, stream, consumer);
  }
}

function explained(error: unknown, stream: string, consumer: string): Error {
  const say = (message: string) => new LongshoreError("LONGSHORE_UNREACHABLE", message, { cause: error });
  if ((error as Error).name === jetStreamOff) {
    return say("JetStream is off on this NATS server. Start it with -js, or let the account use JetStream.");
  }
  switch (codeOf(error)) {
    case streamNotFound:
      return say(`The stream ${stream} does not exist yet; its orchestrator creates it. Is ${stream} the stream of its plugin?`);
    case notUnique:
      return say(
        `The stream ${stream} has a consumer with another name than ${consumer}, and a stream of tasks can have only one. Give all workers of the queue the same consumer (STEPFLOW_NATS_CONSUMER), or remove the other: nats consumer ls ${stream}`,
      );
    default:
      return say(`The consumer ${consumer} of stream ${stream} cannot be used: ${(error as Error).message}`);
  }
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown }).code;
}
