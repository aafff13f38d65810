// The worker half of Stepflow's gRPC queues: one PullTasks stream brings assignments, unary calls report on them. README.md in the folder
// above is the contract; its section "Our worker" lists what this half does where the wire leaves it a choice.
//
// Backpressure. A task is claimed only once there is a slot for it. The stream has a connection of its own with a small window, and one
// assignment is read at a time: the next is not looked at before a slot was found for the one before. So beyond its slots a worker holds
// one assignment, unclaimed, and what fits the window; flow control keeps the rest with the orchestrator, where other workers find it.
// The stream stays open while all slots are taken: the reference loses what it has sent on a stream that closes, until its queue timeout.
// An assignment is read before there is a slot, and not after, so that a worker that is full still answers discovery, for which an
// orchestrator waits five seconds, and so that an idle one keeps no slot from other transports.

import type { Backoff } from "../../../../core/backoff.ts";
import type { GrpcChannel } from "../../../../net/grpc/client.ts";
import { poll } from "../../../../runner/poll.ts";
import { keepReceiving } from "../../../../runner/receive.ts";
import type { Transport, TransportHost } from "../../../../runner/transport.ts";
import type { TaskAssignment } from "../../wire/messages.ts";
import { TasksService } from "../../wire/services.ts";
import { failureOfCall } from "../grpc-failure.ts";
import { addressOf } from "../orchestrators.ts";
import { type QueueSource, queueTransport } from "../queue-transport.ts";
import { type OpenChannel, QueueWorker } from "../queue-worker.ts";
import { type GrpcSettings, grpcSettings, type StepflowGrpcOptions } from "./options.ts";

/**
 * `await work({ tasks, on: stepflowGrpc("localhost:7837", { queue: "python" }) })`. By default the address is `STEPFLOW_TASKS_URL`, else
 * `localhost:7837`.
 */
export function stepflowGrpc(url?: string, options: StepflowGrpcOptions = {}): Transport {
  return queueTransport(new PullStream(grpcSettings(url, options)));
}

/** Soon after an orchestrator that only restarts; never so often that one which stays away would mind. */
const reopening: Backoff = { kind: "exponential", delayMs: 200, maxMs: 10_000, jitter: 0.3 };
/** What of the stream may be under way to us unread: an assignment of usual size. Larger ones take several turns of the window. */
const pullWindowBytes = 16_384;
/** The name in events of polls instead of a task's. */
const anyTask = "*";

class PullStream implements QueueSource {
  readonly name: string;
  readonly settings: GrpcSettings;
  readonly orchestratorUrl: string;
  #channel: GrpcChannel | undefined;

  constructor(settings: GrpcSettings) {
    this.settings = settings;
    this.orchestratorUrl = settings.url;
    this.name = `stepflow ${addressOf(settings.url)} queue ${settings.queue}`;
  }

  /** Keeps a stream open until the worker drains. */
  receive(host: TransportHost, worker: QueueWorker, open: OpenChannel): Promise<void> {
    const { url, queue, workerId } = this.settings;
    const channel = open(url, { windowBytes: pullWindowBytes });
    this.#channel = channel;
    return keepReceiving(host, {
      what: `pull of queue ${queue}`,
      backoff: reopening,
      receive: (opened) => {
        const call = () => this.#read(host, channel, worker, opened);
        return poll(host, { task: anyTask, worker: workerId, count: host.slots.free, call });
      },
    });
  }

  async close(): Promise<void> {
    await this.#channel?.close();
  }

  /** Resolves when the orchestrator has ended the stream or the worker drains. */
  async #read(host: TransportHost, channel: GrpcChannel, worker: QueueWorker, opened: () => void): Promise<void> {
    const { draining: signal } = host;
    const { url, queue: queueName, workerId } = this.settings;
    const stream = channel.serverStream(TasksService.PullTasks, { queueName, workerId }, { signal, opened });
    try {
      for await (const assignment of stream) {
        if (QueueWorker.isDiscovery(assignment)) worker.discover(assignment);
        else await this.#take(host, assignment, worker);
        if (signal.aborted) return;
      }
    } catch (error) {
      throw failureOfCall(`PullTasks at ${url}`, error);
    }
  }

  async #take({ slots, emit, wants }: TransportHost, assignment: TaskAssignment, worker: QueueWorker): Promise<void> {
    let [slot] = slots.takeFree(1);
    if (slot === undefined) {
      if (wants("slotsFull")) emit("slotsFull", { task: anyTask, worker: this.settings.workerId });
      slot = await slots.take();
    }
    // Draining began while it waited: it is not claimed yet, and another worker can have it at once.
    if (slot === undefined) worker.giveBack(assignment);
    else worker.take(assignment, slot);
  }
}
