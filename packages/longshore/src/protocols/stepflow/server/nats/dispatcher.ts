// Publishes the tasks of queues to JetStream: stream `<STREAM>` with the one subject `<STREAM>.tasks`, where the queue's workers take them
// from a durable consumer that they share. The stream only carries tasks; the board is the record. A message that is lost, or taken by a
// worker that dies before its first heartbeat, is detected when no worker takes the task in time, and published again under another id.
// Several orchestrators may publish to one stream: each task names the one that it belongs to, and its worker reports there.

import type { Clock } from "../../../../core/clock.ts";
import { pause } from "../../../../core/clock.ts";
import type { FailureListener } from "../../../../core/failure-listener.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import { TaskAssignment } from "../../wire/messages.ts";
import { loadNats, type NatsClient } from "../../wire/nats/client.ts";
import type { Addresses } from "../address.ts";
import type { NatsPlugin } from "../config/config.ts";
import { deliver } from "../queue/courier.ts";
import type { Delivery, TaskQueue } from "../queue/queue.ts";
import { NatsServerConnection } from "./connection.ts";

export interface NatsDispatcherOptions {
  readonly clock: Clock;
  readonly plugin: Pick<NatsPlugin, "name" | "url" | "consumer">;
  /** Each under the name of its stream. */
  readonly queues: readonly TaskQueue[];
  readonly addresses: Addresses;
  readonly trouble: FailureListener;
  /** Replaced in tests. */
  readonly load?: () => Promise<NatsClient>;
}

/** Messages of one queue that no worker has taken. More would only wait in the stream instead of the board, which has priorities. */
const unclaimedMax = 32;
/** How long a message may wait to be taken up before it is published again. Three of them fit into the reference's queue timeout. */
const offerMs = 10_000;
/** The same for the question what workers can do. */
const discoveryMs = 10_000;
/** How often workers are called again: a new release of them may bring other components, and none of them announces itself. */
const refreshMs = 300_000;
/** So many questions that were read and not answered: these workers will not, and are given tasks all the same. */
const unansweredMax = 2;

export class NatsDispatcher {
  readonly #options: NatsDispatcherOptions;
  readonly #stopping = new AbortController();
  /** Each courier has a signal of its own, so that listeners do not pile up on one. */
  readonly #couriers = new Set<AbortController>();
  #running: Promise<unknown> = Promise.resolve();

  constructor(options: NatsDispatcherOptions) {
    this.#options = options;
  }

  /** Rejects when the NATS client is not installed. A server that cannot be reached yet is tried until it can. */
  async start(): Promise<void> {
    const { plugin, queues, clock, trouble, load } = this.#options;
    const streams = queues.map(({ name }) => name);
    const client = await loadNats(load);
    const link = new NatsServerConnection({ client, url: plugin.url, consumer: plugin.consumer, streams, clock, trouble });
    this.#running = Promise.all([link.run(this.#stopping.signal), ...queues.map((queue) => this.#serve(queue, link))]);
  }

  /** What was published and not taken up stays in its stream: it may be, until the offer ends. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const courier of this.#couriers) courier.abort();
    await this.#running;
  }

  async #serve(queue: TaskQueue, link: NatsServerConnection): Promise<void> {
    const gone = this.#stopping.signal;
    const queried = await this.#askUntilKnown(queue, link);
    const couriers = Array.from({ length: gone.aborted ? 0 : unclaimedMax }, () => this.#carry(queue, link));
    await Promise.all([...couriers, this.#askAgain(queue, link, queried)]);
  }

  async #carry(queue: TaskQueue, link: NatsServerConnection): Promise<void> {
    const { addresses, clock } = this.#options;
    const gone = new AbortController();
    this.#couriers.add(gone);
    let sequence: number | undefined;
    const recipient = {
      gone: gone.signal,
      ready: () => ({ offerMs, orchestratorServiceUrl: addresses.forCaller() }),
      send: async (assignment: Encodable<typeof TaskAssignment>, delivery: Delivery) => {
        sequence = await this.#publish(queue, link, assignment, delivery, gone.signal);
      },
      lapsed: async () => {
        // A worker that takes it from the stream now could do nothing with it.
        if (sequence !== undefined) await link.remove(queue.name, sequence);
      },
      leave: (delivery: Delivery) => delivery.leave(),
    };
    // It rejects when the server is closing, which ends it like being stopped.
    await deliver(queue, recipient, clock).catch(() => {});
  }

  /** Until it is in the stream, or is not needed there any more. */
  async #publish(
    queue: TaskQueue,
    link: NatsServerConnection,
    assignment: Encodable<typeof TaskAssignment>,
    delivery: Delivery,
    gone: AbortSignal,
  ): Promise<number | undefined> {
    const bytes = TaskAssignment.encode(assignment);
    const over = new AbortController();
    const end = () => over.abort();
    void delivery.outcome.then(end);
    gone.addEventListener("abort", end, { once: true });
    try {
      const published = await link.publish(queue.name, bytes, delivery.id, over.signal);
      if (published.kind === "stored") return published.sequence;
      if (published.kind === "too-large") await delivery.refuse(tooLarge(bytes.length, published.bytesMax));
      return undefined;
    } finally {
      gone.removeEventListener("abort", end);
    }
  }

  /**
   * Components have to be called by the names that workers gave them; while no worker is there to list them, none is there to call. False
   * when there was nothing to request.
   */
  async #askUntilKnown(queue: TaskQueue, link: NatsServerConnection): Promise<boolean> {
    let unanswered = 0;
    let queried = false;
    while (!this.#stopping.signal.aborted && (await queue.registrations.known()) === null && unanswered < unansweredMax) {
      queried = true;
      if ((await this.#ask(queue, link)) === "read") unanswered++;
    }
    return queried;
  }

  async #askAgain(queue: TaskQueue, link: NatsServerConnection, lately: boolean): Promise<void> {
    const gone = this.#stopping.signal;
    for (let wait = lately; !gone.aborted; wait = true) {
      if (wait) await pause(this.#options.clock, refreshMs, gone);
      if (!gone.aborted) await this.#ask(queue, link);
    }
  }

  /** `read`: a worker took the question and gave no answer. */
  async #ask(queue: TaskQueue, link: NatsServerConnection): Promise<"answered" | "read" | "unread"> {
    const gone = this.#stopping.signal;
    const question = queue.discover({ orchestratorServiceUrl: this.#options.addresses.forCaller(), patienceMs: discoveryMs });
    gone.addEventListener("abort", question.drop, { once: true });
    try {
      const published = await link.publish(queue.name, TaskAssignment.encode(question.assignment), question.id, gone);
      if (await question.answered) return "answered";
      if (published.kind !== "stored" || gone.aborted) return "unread";
      return (await link.remove(queue.name, published.sequence)) ? "unread" : "read";
    } finally {
      gone.removeEventListener("abort", question.drop);
      question.drop();
    }
  }
}

function tooLarge(bytes: number, bytesMax: number) {
  const message = `the assignment has ${bytes} bytes, and the NATS server takes ${bytesMax}: keep large inputs as blobs, or raise max_payload`;
  return { code: "INVALID_INPUT" as const, message };
}
