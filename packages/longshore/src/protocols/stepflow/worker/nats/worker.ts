// The worker half of Stepflow's NATS queues. Assignments come from a JetStream stream through a durable consumer that all workers of a
// queue share. Reports are sent to the orchestrator over gRPC. README.md of this protocol is the contract.
//
// The worker takes a slot for every requested message. It acknowledges a message when the task is claimed: if it dies before, the message
// is delivered again. During a long claim, the worker sends progress messages to the NATS server. When no orchestrator knows the owner of
// the task, the worker gives the message back with a delay. When the orchestrator does not know the task any more, the worker removes the
// message.

import type { Backoff } from "../../../../core/backoff.ts";
import { type Clock, pause, systemClock } from "../../../../core/clock.ts";
import { LongshoreError, toError } from "../../../../core/errors.ts";
import { keepReceiving } from "../../../../runner/receive.ts";
import type { Slot, Transport, TransportHost } from "../../../../runner/transport.ts";
import { TaskAssignment } from "../../wire/messages.ts";
import { loadNats, type NatsClient, type NatsConnection, type NatsMessage } from "../../wire/nats/client.ts";
import { ensureConsumer } from "../../wire/nats/consumer.ts";
import { guarded } from "../../wire/nats/guard.ts";
import { liveness } from "../../wire/nats/servers.ts";
import { addressOf } from "../orchestrators.ts";
import { type QueueSource, queueTransport } from "../queue-transport.ts";
import { type Delivery, QueueWorker } from "../queue-worker.ts";
import { type NatsSettings, natsSettings, type StepflowNatsOptions } from "./options.ts";
import { PullConnection } from "./pull-connection.ts";
import { delayAfter, deliveriesIn } from "./redelivery.ts";

/**
 * `await work({ tasks, on: stepflowNats("nats://localhost:4222", { stream: "STEPFLOW_TASKS" }) })`. By default the address is
 * `STEPFLOW_NATS_URL`, else `nats://localhost:4222`.
 */
export function stepflowNats(url?: string, options: StepflowNatsOptions = {}): Transport {
  return queueTransport(new NatsStream(natsSettings(url, options)));
}

const connecting: Backoff = { kind: "exponential", delayMs: 500, maxMs: 15_000, jitter: 0.3 };
/** The pause while the orchestrator has not created the stream yet, as in the reference. */
const lookingAgain: Backoff = { kind: "fixed", delayMs: 2_000 };
/** How long closing waits for a server that may be gone. */
const closeMsMax = 2_000;
const nanosPerMs = 1_000_000;

/** JetStream's acknowledgement bodies. */
const acks = {
  done: Buffer.from("+ACK"),
  inProgress: Buffer.from("+WPI"),
  never: Buffer.from("+TERM"),
  again: Buffer.from("-NAK"),
} as const;

class NatsStream implements QueueSource {
  readonly name: string;
  readonly settings: NatsSettings;
  readonly orchestratorUrl: string | undefined;
  #client!: NatsClient;
  #connection: NatsConnection | undefined;
  #clock: Clock = systemClock;

  constructor(settings: NatsSettings) {
    const { servers, stream, orchestratorUrl } = settings;
    this.settings = settings;
    this.orchestratorUrl = orchestratorUrl;
    this.name = `stepflow ${servers.join(",")} stream ${stream}`;
  }

  async prepare(): Promise<void> {
    this.#client = await loadNats();
  }

  /**
   * A task contains the address of its orchestrator, and any program that may publish to the stream can write tasks. So the token is sent
   * only to the configured orchestrator and blob address.
   */
  trusts(address: string): boolean {
    const { token, orchestratorUrl, blobUrl } = this.settings;
    const addresses = [orchestratorUrl, blobUrl].map((url) => (url === undefined ? undefined : addressOf(url)));
    return token === undefined || addresses.includes(addressOf(address));
  }

  /** Stays connected until the worker drains. */
  receive(host: TransportHost, worker: QueueWorker): Promise<void> {
    this.#clock = host.clock;
    return keepReceiving(host, {
      what: "connection",
      backoff: connecting,
      receive: async (connected) => {
        try {
          this.#connection = await this.#connect();
        } catch (error) {
          const message = `Cannot reach ${this.settings.servers.join(",")}: ${toError(error).message}`;
          throw new LongshoreError("LONGSHORE_UNREACHABLE", message, { cause: error });
        }
        await this.#consume(host, this.#connection, worker, connected);
      },
    });
  }

  async close(): Promise<void> {
    // The last acknowledgements are sent before the connection closes. Without a server they are lost, which costs one more delivery.
    const connection = this.#connection;
    if (connection === undefined) return;
    const sent = connection.drain().catch(() => {});
    await Promise.race([sent, pause(this.#clock, closeMsMax)]);
    await connection.close();
  }

  #connect(): Promise<NatsConnection> {
    const { servers, access, connection, workerId } = this.settings;
    // The client reconnects by itself, also to other servers of the cluster.
    const keeping = { maxReconnectAttempts: -1, ...liveness };
    const options = { name: `longshore ${workerId}`, ...keeping, ...access, ...connection, servers: [...servers] };
    return guarded(() => this.#client.transport.connect(options));
  }

  /** Pulls from the consumer until the worker drains or the connection is closed permanently. */
  async #consume(host: TransportHost, connection: NatsConnection, worker: QueueWorker, connected: () => void): Promise<void> {
    const { stream, consumer } = this.settings;
    const puller = new PullConnection(connection, {
      host,
      stream,
      consumer,
      inbox: this.#client.transport.createInbox(),
      receive: (message, slot) => this.#receive(host, message, slot, worker),
      refuse: (message) => answer(message, acks.again),
    });
    await keepReceiving(host, {
      what: `consumer ${consumer} of stream ${stream}`,
      backoff: lookingAgain,
      over: () => connection.isClosed(),
      receive: async (opened) => {
        await puller.usable();
        await ensureConsumer(this.#client.jetstream, connection, stream, consumer);
        connected();
        opened();
        await puller.pull();
      },
    });
    await puller.end();
  }

  #receive(host: TransportHost, message: NatsMessage, slot: Slot, worker: QueueWorker): void {
    let assignment: TaskAssignment;
    try {
      assignment = TaskAssignment.decode(message.data);
    } catch (error) {
      slot.release();
      const text = `A message of stream ${this.settings.stream} is no task and was removed: ${toError(error).message}`;
      host.notice({ level: "error", message: text });
      return answer(message, acks.never);
    }
    const delivery: Delivery = {
      taken: () => answer(message, acks.done),
      later: () => this.#later(host, message, assignment),
      useless: (why, expected) => {
        if (!expected) host.notice({ level: "error", message: `A message of stream ${this.settings.stream} was removed: ${why}.` });
        answer(message, acks.never);
      },
      waiting: () => answer(message, acks.inProgress),
    };
    if (!QueueWorker.isDiscovery(assignment)) return worker.take(assignment, slot, delivery);
    slot.release();
    worker.discover(assignment, delivery);
  }

  /** No orchestrator knew the owner of the task: the message is delivered again later, or dropped. */
  #later(host: TransportHost, message: NatsMessage, { taskId, context }: TaskAssignment): void {
    const deliveries = deliveriesIn(message.reply);
    const delayMs = delayAfter(deliveries);
    if (delayMs !== undefined) return answer(message, Buffer.from(`-NAK {"delay":${delayMs * nanosPerMs}}`));
    const { stream, orchestratorUrl } = this.settings;
    const url = context?.orchestratorServiceUrl || orchestratorUrl;
    const text = `task ${taskId} of stream ${stream} is given up after ${deliveries} deliveries: its orchestrator ${url} could not be reached`;
    host.notice({ level: "error", message: `The message of ${text}. An orchestrator that comes back offers its tasks again.` });
    answer(message, acks.never);
  }
}

function answer(message: NatsMessage, ack: Buffer): void {
  try {
    message.respond(ack);
  } catch {
    // The connection was closed meanwhile. The message is delivered again, and then the worker notices that the task is claimed or done.
  }
}
