// The worker half of Stepflow's gRPC queues: one PullTasks stream delivers assignments, and unary calls report on them. The README.md of
// this protocol is the contract; its section "Our worker" lists what this half decides where the wire leaves a choice.
//
// Backpressure. The worker claims a task only when it has a slot for it. The stream has its own connection with a small window, and the
// worker reads one assignment at a time: it reads the next one only after it has found a slot for the current one. So in addition to its
// slots, a worker has one unclaimed assignment, and the bytes that fit into the window. Flow control keeps all further assignments at the
// orchestrator, where other workers can get them. The stream stays open while all slots are taken: when a stream closes, the reference
// loses what it has sent on it until its queue timeout. An assignment is read before the slot is taken, for two reasons. A full worker must
// still answer discovery, because an orchestrator waits five seconds for it. And an idle worker must not keep a slot from other transports.

import type { Backoff } from "../../../../core/backoff.ts";
import { toError } from "../../../../core/errors.ts";
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

/** Reconnects soon to an orchestrator that only restarts, and rarely to one that stays unreachable. */
const reopening: Backoff = { kind: "exponential", delayMs: 200, maxMs: 10_000, jitter: 0.3 };
/** Unread bytes that may be in flight on the stream: one assignment of usual size. Larger ones need several window updates. */
const pullWindowBytes = 16_384;
/** Replaces the task's name in poll events. */
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

  /** Resolves when the orchestrator ends the stream or the worker drains. */
  async #read(host: TransportHost, channel: GrpcChannel, worker: QueueWorker, opened: () => void): Promise<void> {
    const { draining: signal } = host;
    const { url, queue: queueName, workerId } = this.settings;
    // The stream is kept open. If it ended, the assignments behind this one would be lost until their queue timeouts.
    const unreadable = (error: unknown) =>
      host.notice({ level: "warn", message: `A task of the queue ${queueName} is left to its queue timeout: ${toError(error).message}` });
    const stream = channel.serverStream(TasksService.PullTasks, { queueName, workerId }, { signal, opened, unreadable });
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
    // The worker began to drain meanwhile. The task is not claimed yet, so another worker can have it at once.
    if (slot === undefined) worker.giveBack(assignment);
    else worker.take(assignment, slot);
  }
}
