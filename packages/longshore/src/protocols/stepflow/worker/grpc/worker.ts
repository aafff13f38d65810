// The worker half of Stepflow's gRPC queues: one PullTasks stream brings assignments, unary calls report on them. README.md in the folder
// above is the contract; its section "Our worker" lists what this half does where the wire leaves it a choice.
//
// Backpressure. A task is claimed only once there is a slot for it. The stream has a connection of its own with a small window, and one
// assignment is read at a time: the next is not looked at before a slot was found for the one before. So beyond its slots a worker holds
// one assignment, unclaimed, and what fits the window; flow control keeps the rest with the orchestrator, where other workers find it.
// The stream stays open while all slots are taken: the reference loses what it has sent on a stream that closes, until its queue timeout.
// An assignment is read before there is a slot, and not after, so that a worker that is full still answers discovery, for which an
// orchestrator waits five seconds, and so that an idle one keeps no slot from other transports.

import { type Backoff, backoffMs } from "../../../../core/backoff.ts";
import { pause } from "../../../../core/clock.ts";
import type { Task } from "../../../../core/task.ts";
import type { GrpcChannel } from "../../../../net/grpc/client.ts";
import type { Transport, TransportHost } from "../../../../runner/transport.ts";
import type { TaskAssignment } from "../../wire/messages.ts";
import { TasksService } from "../../wire/services.ts";
import { failureOfCall } from "../grpc-failure.ts";
import { addressOf } from "../orchestrators.ts";
import { channelOpener, QueueWorker, queueCapabilities, queueReportTries } from "../queue-worker.ts";
import { type GrpcSettings, grpcSettings, type StepflowGrpcOptions } from "./options.ts";

/**
 * `await work({ tasks, on: stepflowGrpc("localhost:7837", { queue: "python" }) })`. By default the address is `STEPFLOW_TASKS_URL`, else
 * `localhost:7837`.
 */
export function stepflowGrpc(url?: string, options: StepflowGrpcOptions = {}): Transport {
  return new StepflowGrpc(grpcSettings(url, options));
}

/** Soon after an orchestrator that only restarts; never so often that one which stays away would mind. */
const reopening: Backoff = { kind: "exponential", delayMs: 200, maxMs: 10_000, jitter: 0.3 };
/** What of the stream may be under way to us unread: an assignment of usual size. Larger ones take several turns of the window. */
const pullWindowBytes = 16_384;
/** The name in events of polls instead of a task's. */
const anyTask = "*";

class StepflowGrpc implements Transport {
  readonly name: string;
  readonly capabilities = queueCapabilities;
  readonly reportTries = queueReportTries;
  readonly drainMs?: number;
  readonly slotsFor?: (tasks: ReadonlyMap<string, Task>) => number;
  readonly #settings: GrpcSettings;
  #host!: TransportHost;
  #worker: QueueWorker | undefined;
  #channel: GrpcChannel | undefined;
  #pulling: Promise<void> = Promise.resolve();

  constructor(settings: GrpcSettings) {
    const { slots, drainMs } = settings;
    this.#settings = settings;
    this.name = `stepflow ${addressOf(settings.url)} queue ${settings.queue}`;
    if (drainMs !== undefined) this.drainMs = drainMs;
    if (slots !== undefined) this.slotsFor = () => slots;
  }

  async start(host: TransportHost): Promise<void> {
    const settings = this.#settings;
    const open = channelOpener(settings, host.clock);
    this.#host = host;
    this.#worker = new QueueWorker({ settings, host, open, orchestratorUrl: settings.url });
    this.#channel = open(settings.url, { windowBytes: pullWindowBytes });
    this.#pulling = this.#pull(this.#channel, this.#worker);
  }

  async drain(): Promise<void> {
    await this.#pulling;
    await this.#worker?.idle();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#channel?.close(), this.#worker?.close()]);
  }

  /** Keeps a stream open until the worker drains. */
  async #pull(channel: GrpcChannel, worker: QueueWorker): Promise<void> {
    const { clock, draining, failing, working, emit, wants } = this.#host;
    const what = `pull of queue ${this.#settings.queue}`;
    const poll = { task: anyTask, worker: this.#settings.workerId };
    for (let failures = 0; !draining.aborted; ) {
      const sinceMs = clock.now();
      const opened = () => {
        failures = 0;
        working(what);
      };
      if (wants("pollStarted")) emit("pollStarted", { ...poll, count: this.#host.slots.free });
      try {
        await this.#read(channel, worker, opened);
      } catch (error) {
        if (draining.aborted) return;
        const failure = failureOfCall(`PullTasks at ${this.#settings.url}`, error);
        failing(what, failure);
        if (wants("pollFailed")) emit("pollFailed", { ...poll, durationMs: clock.now() - sinceMs, error: failure });
      }
      // Also after a stream that ended well: an orchestrator that ends streams is closing.
      await pause(clock, backoffMs(reopening, ++failures, Math.random()), draining);
    }
  }

  /** Resolves when the orchestrator has ended the stream or the worker drains. */
  async #read(channel: GrpcChannel, worker: QueueWorker, opened: () => void): Promise<void> {
    const { draining: signal } = this.#host;
    const { queue: queueName, workerId } = this.#settings;
    const stream = channel.serverStream(TasksService.PullTasks, { queueName, workerId }, { signal, opened });
    for await (const assignment of stream) {
      if (QueueWorker.isDiscovery(assignment)) worker.discover(assignment);
      else await this.#take(assignment, worker);
      if (signal.aborted) return;
    }
  }

  async #take(assignment: TaskAssignment, worker: QueueWorker): Promise<void> {
    const { slots, emit, wants } = this.#host;
    let [slot] = slots.takeFree(1);
    if (slot === undefined) {
      if (wants("slotsFull")) emit("slotsFull", { task: anyTask, worker: this.#settings.workerId });
      slot = await slots.take();
    }
    // Draining began while it waited: it is not claimed yet, and another worker can have it at once.
    if (slot === undefined) worker.giveBack(assignment);
    else worker.take(assignment, slot);
  }
}
